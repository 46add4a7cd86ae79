package plan

import (
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/tunnel"
)

// IndexGuard checks that the indices in a plan still belong to the same interfaces. Another user may delete
// such an interface, and VPP then gives its index to the next new interface.
type IndexGuard struct {
	planned *observe.Snapshot
	known   map[uint32]*expected
}

// expected is the state that an interface must have. This is the state in the snapshot of the plan, or the
// state after the plan created the interface, in both cases with the tag that the agent has set later. The
// name of a new tunnel is empty until VPP reports it.
type expected struct {
	observe.Interface
	tunnel *observe.Tunnel // distinguishes an untagged tunnel from others
	epoch  int64           // epoch of VPP's stats segment before the last reading of the interface, 0 if unknown
}

// knownByKeyAlone reports whether the interface is a tunnel without a tag. Only its key distinguishes such a
// tunnel from other tunnels.
func (s *expected) knownByKeyAlone() bool { return s.Tag == "" && s.tunnel != nil }

// NewIndexGuard returns an IndexGuard for a plan that was made from this snapshot.
func NewIndexGuard(planned *observe.Snapshot) *IndexGuard {
	return &IndexGuard{planned, make(map[uint32]*expected)}
}

// NoteMade records that an action has created an interface with this index.
func (g *IndexGuard) NoteMade(index uint32, by Action) {
	made := &expected{Interface: observe.Interface{Index: index, Sup: index}}
	switch a := by.(type) {
	case CreateSub:
		made.Name, made.Sup, made.Sub = a.Sub.Name, a.Port.Index, observe.SubInterface{
			ID: a.ID, Tags: uint8(a.Access.Tagging.Tags()), Dot1ad: a.Access.Tagging == intent.Dot1ad, Exact: a.Access.Exact,
			Outer: a.Access.Outer, Inner: a.Access.Inner,
		}
		made.Device = g.expectedAt(a.Port.Index).Device
	case CreateTunnel:
		made.tunnel = &observe.Tunnel{Index: index, Tunnel: a.Tunnel, Default: true}
	}
	g.known[index] = made
}

// NoteTag records the new tag of an interface.
func (g *IndexGuard) NoteTag(index uint32, tag string) { g.expectedAt(index).Tag = tag }

func (g *IndexGuard) expectedAt(index uint32) *expected {
	if is := g.known[index]; is != nil {
		return is
	}
	is := &expected{Interface: observe.Interface{Index: index}}
	if i := g.planned.ByIndex(index); i != nil {
		is.Interface = *i
	}
	if is.Tag == "" { // a tag would distinguish the interface from others
		is.tunnel = g.planned.TunnelAt(index)
	}
	g.known[index] = is
	return is
}

// AddUnread adds the objects that an operation's message names by index to the list named. It omits
// interfaces that are known to be unchanged in this epoch of VPP's stats segment. made contains the indices
// of the interfaces that the plan has created.
func (g *IndexGuard) AddUnread(op Op, made map[Made]uint32, epoch int64, named *observe.NamedByIndex) {
	for _, ref := range op.names() {
		index := ref.At(made)
		if index == observe.NoIndex || g.isCurrent(op, index, epoch) || !named.AddInterface(index) {
			continue
		}
		if is := g.expectedAt(index); is.knownByKeyAlone() {
			named.Tunnels = append(named.Tunnels, is.tunnel)
		}
	}
	if _, index, names := policerOf(op.Action); names && index != observe.NoIndex {
		named.Policers = append(named.Policers, index)
	}
	if table := tableOf(op.Action); table.Index != observe.NoIndex {
		named.Tables = append(named.Tables, table.Index)
	}
}

// NamesMost reports whether these operations name at least a third of all interfaces. It does not count
// interfaces that are known to be unchanged in this epoch. If it returns true, a read of all interfaces is
// faster than individual reads of the named interfaces. keys reports whether the named interfaces include a
// tunnel that only its key distinguishes from other tunnels.
func (g *IndexGuard) NamesMost(ops []Op, made map[Made]uint32, epoch int64) (most, keys bool) {
	named := make(map[uint32]bool)
	for _, op := range ops {
		for _, ref := range op.names() {
			index := ref.At(made)
			if index == observe.NoIndex || g.isCurrent(op, index, epoch) {
				continue
			}
			named[index] = true
			keys = keys || g.expectedAt(index).knownByKeyAlone()
		}
	}
	return 3*len(named) >= len(g.planned.Interfaces)+len(made), keys
}

// isCurrent reports whether the interface need not be read again. Within an epoch of VPP's stats segment, no
// interface is created or deleted, but a tag may change while the plan's claims are written to disk. An
// interface is therefore current only if it was read in this epoch after the claims were written. The port of
// a new sub-interface is also current if the snapshot of the plan is from this epoch.
func (g *IndexGuard) isCurrent(op Op, index uint32, epoch int64) bool {
	_, creates := op.Action.(CreateSub)
	return epoch != 0 && (g.expectedAt(index).epoch == epoch || creates && g.planned.Epoch == epoch)
}

// Verify returns the reason why the operation must not be sent, or nil if all objects that its message names
// are as planned.
func (g *IndexGuard) Verify(op Op, made map[Made]uint32, epoch int64, now *observe.Snapshot) *Reason {
	for _, ref := range op.names() {
		if index := ref.At(made); index != observe.NoIndex && g.isCurrent(op, index, epoch) {
			continue
		}
		if reason := g.verifyInterface(ref, ref.At(made), epoch, now); reason != nil {
			return reason
		}
	}
	if table := tableOf(op.Action); table.Index != observe.NoIndex {
		if is := now.Tables[table.Index]; is == nil || is.Mark != table.Mark {
			return changed(tableRef(table))
		}
	}
	if name, index, names := policerOf(op.Action); names && index != observe.NoIndex {
		if is := now.Policers[name]; is == nil || is.Index != index {
			return changed(policerRef(name))
		}
	}
	return nil
}

func (g *IndexGuard) verifyInterface(ref Ref, index uint32, epoch int64, now *observe.Snapshot) *Reason {
	if index == observe.NoIndex {
		return pending("verify_mismatch", ref.Name, "%s was not created", ref.Name)
	}
	is, was := now.ByIndex(index), g.expectedAt(index)
	if is == nil {
		return changed(ref)
	}
	if was.knownByKeyAlone() {
		if existing := now.TunnelAt(index); existing == nil || *existing != *was.tunnel {
			return replaced(ref, is)
		}
		if was.Name == "" {
			was.Name, was.Device = is.Name, is.Device
		}
	}
	if !is.Same(&was.Interface) {
		return replaced(ref, is)
	}
	was.epoch = epoch
	return nil
}

// policerOf returns the policer that a message names by index. names is false if the message names no
// policer.
func policerOf(action Action) (name string, index uint32, names bool) {
	switch a := action.(type) {
	case UpdatePolicer:
		return a.Name, a.Index, true
	case DeletePolicer:
		return a.Name, a.Index, true
	case SetSession:
		return a.Policer, a.Index, true
	}
	return "", observe.NoIndex, false
}

// tableOf returns the classify table that a message names by index. A table that the plan creates has no
// index yet.
func tableOf(action Action) Table {
	switch a := action.(type) {
	case SetSession:
		return a.Table
	case SetClassifier:
		return a.Table
	case DeleteTable:
		return a.Table
	}
	return Table{Index: observe.NoIndex}
}

func replaced(ref Ref, is *observe.Interface) *Reason {
	if is.Name == ref.Name {
		return pending("verify_mismatch", Describe(is), "%s was replaced or got another tag, %q, while the plan was carried out; it is left as it is",
			is.Name, is.Tag)
	}
	return pending("verify_mismatch", Describe(is), "%s with the tag %q has replaced %s; it is not changed", is.Name, is.Tag, ref.Name)
}

// CreateCheck uses a snapshot that is newer than the plan, to check whether the objects of the plan may still
// be created.
type CreateCheck struct {
	now     *observe.Snapshot
	subs    *subInterfaces
	ids     map[subID]*observe.Interface
	tunnels map[tunnel.Identity]*observe.Tunnel
}

type subID struct{ port, id uint32 }

// NewCreateCheck builds indexes of a snapshot. With them, the time to check a plan grows only linearly with
// the length of the plan.
func NewCreateCheck(now *observe.Snapshot) *CreateCheck {
	interfaces, tunnels := len(now.Interfaces), len(now.Tunnels)
	c := &CreateCheck{
		now: now, subs: newSubInterfaces(interfaces), ids: make(map[subID]*observe.Interface, interfaces),
		tunnels: make(map[tunnel.Identity]*observe.Tunnel, tunnels),
	}
	for _, i := range now.Interfaces {
		if !i.IsSub() {
			continue
		}
		c.ids[subID{i.Sup, i.Sub.ID}] = i
		c.subs.add(i)
	}
	for _, t := range now.Tunnels {
		if t.TakesKey() {
			c.tunnels[t.Identity()] = t
		}
	}
	return c
}

// Verify returns the reason why the operation must no longer be sent, or nil. The key of an object to be
// created must still be free. If a sub-interface with the same VLANs exists, VPP refuses the new
// sub-interface and stops the traffic of the existing sub-interface. A more specific sub-interface takes the
// frames of a less specific sub-interface.
func (c *CreateCheck) Verify(op Op) *Reason {
	switch a := op.Action.(type) {
	case CreateSub:
		return c.sub(a)
	case CreateTunnel:
		if t := c.tunnels[a.Tunnel.Identity()]; t != nil {
			return c.taken(t.Index)
		}
	}
	return nil
}

func (c *CreateCheck) sub(a CreateSub) *Reason {
	if existing := c.ids[subID{a.Port.Index, a.ID}]; existing != nil {
		return c.taken(existing.Index)
	}
	for existing := range c.subs.overlapping(a.Port.Index, a.Access) {
		return pending("verify_mismatch", Describe(existing), "%s, which takes %s, was created meanwhile and shares frames with VLAN %s",
			existing.Name, taken(existing.Sub), vlan(a.Access))
	}
	return nil
}

func (c *CreateCheck) taken(index uint32) *Reason {
	i := c.now.ByIndex(index)
	if i == nil {
		return pending("verify_mismatch", "", "the object to be created exists by now")
	}
	return pending("verify_mismatch", Describe(i), "%s exists where another one is to be created", i.Name)
}

func changed(ref Ref) *Reason {
	return pending("verify_mismatch", ref.Name, "%s went or changed while the plan was carried out", ref.Name)
}
