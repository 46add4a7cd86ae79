package plan

import (
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
)

// Check looks at a newer snapshot for reasons not to send an operation after all.
type Check struct {
	now     *observe.Snapshot
	subs    map[selection]*observe.Interface
	ids     map[subID]*observe.Interface
	tunnels map[intent.Identity]*observe.Tunnel
	byIndex map[uint32]*observe.Tunnel
}

type subID struct{ port, id uint32 }

// NewCheck prepares the look-ups, so that a plan is checked in one pass however long it is.
func NewCheck(now *observe.Snapshot) *Check {
	interfaces, tunnels := len(now.Interfaces), len(now.Tunnels)
	c := &Check{
		now: now, subs: make(map[selection]*observe.Interface, interfaces), ids: make(map[subID]*observe.Interface, interfaces),
		tunnels: make(map[intent.Identity]*observe.Tunnel, tunnels), byIndex: make(map[uint32]*observe.Tunnel, tunnels),
	}
	for _, i := range now.Interfaces {
		if !i.IsSub() {
			continue
		}
		c.ids[subID{i.Sup, i.Sub.ID}] = i
		if !i.Sub.Wide {
			c.subs[selectionOf(i)] = i
		}
	}
	for _, t := range now.Tunnels {
		c.byIndex[t.Index] = t
		if t.Default || t.Encapsulation == intent.GENEVE {
			c.tunnels[t.Identity()] = t
		}
	}
	return c
}

// Of returns why the operation must not be sent after all, or nil. Deletes must still meet the very
// interface that was planned for, because VPP gives indices and names out again and its delete messages
// go by key. Creates must still find their key free: VPP refuses a second sub-interface with the same VLAN
// and stops the traffic of the first one.
func (c *Check) Of(op Op) *Reason {
	switch a := op.Action.(type) {
	case DeleteSub:
		return c.tag(a.Sub, a.Tag)
	case SetTag:
		if op.Stage == Delete {
			return c.tag(a.Interface, a.Was)
		}
	case DeleteTunnel:
		if reason := c.tag(a.Interface, a.Tag); reason != nil {
			return reason
		}
		if t := c.byIndex[a.Interface.Index]; t == nil || t.Tunnel != a.Tunnel || !t.Default {
			return changed(a.Interface)
		}
	case DeletePolicer:
		if p := c.now.Policers[a.Name]; p == nil || p.Index != a.Index || p.Index == observe.NoIndex {
			return changed(policerRef(a.Name))
		}
	case CreateSub:
		return c.sub(a)
	case CreateTunnel:
		if t := c.tunnels[a.Tunnel.Identity()]; t != nil {
			return c.taken(t.Index)
		}
	}
	return nil
}

func (c *Check) tag(ref Ref, tag string) *Reason {
	if i := c.now.ByIndex(ref.Index); i == nil || i.Name != ref.Name || i.Tag != tag {
		return changed(ref)
	}
	return nil
}

func (c *Check) sub(a CreateSub) *Reason {
	port := c.now.ByIndex(a.Port.Index)
	if port == nil || port.Name != a.Port.Name {
		return changed(a.Port)
	}
	if there := c.ids[subID{port.Index, a.ID}]; there != nil {
		return c.taken(there.Index)
	}
	if there := c.subs[selects(port.Index, a.Access)]; there != nil {
		return c.taken(there.Index)
	}
	return nil
}

func (c *Check) taken(index uint32) *Reason {
	i := c.now.ByIndex(index)
	if i == nil {
		return pending("verify_mismatch", "", "what is to be created is there by now")
	}
	return pending("verify_mismatch", Describe(i), "%s stands where another one is to be created", i.Name)
}

func changed(ref Ref) *Reason {
	return pending("verify_mismatch", ref.Name, "%s changed while the plan was carried out", ref.Name)
}
