package plan

import (
	"fmt"
	"slices"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
)

// buildOperations plans the operations for the ends that are not blocked.
func (d *differ) buildOperations(in *intent.Intent) *operationBuilder {
	b := &operationBuilder{
		differ: d, detached: make(map[uint32]bool), raised: make(map[uint32]bool), ids: make(map[uint32]map[uint32]bool),
		refs: make([]Ref, len(in.Present)), unpoliced: make(map[uint32]bool), unbound: make(map[uint32]bool),
		policed: make(map[intent.Key]bool),
	}
	for _, h := range d.endInterfaces {
		if d.leaving[h.Interface.Index] == h {
			b.release(h)
		}
	}
	for _, tombstone := range in.Removed {
		if d.planned(tombstone.Key) {
			b.releaseEnd(tombstone)
			b.removePolicer(tombstone.Key, "the VLL is removed")
		}
	}
	for _, h := range d.endInterfaces {
		if !d.mayChange(h.End) && !d.wantsDown(h.End) {
			b.endLinkLoss(h)
		}
	}
	b.raiseMembers()
	places := d.plannedEnds()
	for _, at := range places {
		if !in.Present[at].IsProbe() {
			b.refs[at] = b.access(in.Present[at])
		}
	}
	for _, at := range places {
		b.build(in.Present[at], b.refs[at])
	}
	b.ops = order(b.ops)
	return b
}

type operationBuilder struct {
	*differ
	ops      []Op
	detached map[uint32]bool            // interfaces that this plan takes out of L2
	raised   map[uint32]bool            // ports set up by this plan
	ids      map[uint32]map[uint32]bool // sub-interface IDs in use, by port
	refs     []Ref                      // access of each end, in the intent's order

	unpoliced map[uint32]bool     // interfaces whose policer node this plan turns off
	unbound   map[uint32]bool     // interfaces whose classify table this plan unbinds
	policed   map[intent.Key]bool // ends whose profile is enforced
}

// add adds an operation and returns it. The pointer is valid until the next call of add.
func (b *operationBuilder) add(end intent.Key, stage Stage, rank int, action Action, drift Drift, why string, args ...any) *Op {
	drift.Object = action.Target().Name
	b.ops = append(b.ops, Op{Stage: stage, End: end, Action: action, Drift: drift, Why: fmt.Sprintf(why, args...), rank: rank})
	return &b.ops[len(b.ops)-1]
}

// release removes the agent's cross-connects from and to an interface, and the interface's policer, and
// deletes the interface. It does not delete a port, but removes the agent's tag from the port.
func (b *operationBuilder) release(h *EndInterface) {
	i := h.Interface
	why := "the VLL is removed"
	switch _, present := b.present[h.End]; {
	case present && b.rebuilt[i.Index]:
		why = "no frames of its VLAN reach it"
	case present:
		why = "its key changes"
	}
	if h.Tunnel == nil {
		b.takePolicerOff(h.End, i, why)
	}
	for from := range b.sendersInto(i.Index) {
		if sender := b.byIndex[from]; sender != nil { // cross-connects from foreign interfaces stay
			b.detach(sender, why)
		}
	}
	if to, connected := b.Connects[i.Index]; connected && (!h.isPort() || b.connectIsOurs(i, to, h)) {
		b.detach(h, why)
	}
	drift := Drift{Field: "exists", Desired: "false", Actual: "true"}
	switch {
	case h.Tunnel != nil:
		b.add(h.End, Delete, 0, DeleteTunnel{h.Tunnel.Tunnel, RefTo(i)}, drift, "%s", why)
	case !h.isPort():
		b.add(h.End, Delete, 0, DeleteSub{RefTo(i)}, drift, "%s", why)
	default:
		if _, ours := ownership.ParseTag(i.Tag); ours {
			drift = Drift{Field: "tag", Desired: "", Actual: i.Tag}
			b.add(h.End, Delete, 0, SetTag{Interface: RefTo(i)}, drift, "%s", why)
		}
		b.giveBack(h)
	}
}

// releaseEnd replaces the agent's tags on the interfaces of a released end by the tags in the tombstone, or
// clears them. The interfaces keep forwarding.
func (b *operationBuilder) releaseEnd(tombstone intent.Tombstone) {
	if !tombstone.Release {
		return
	}
	for h := range b.interfacesOf(tombstone.Key) {
		b.endLinkLoss(h)
		tag, i := tombstone.AccessTag, h.Interface
		if h.Tunnel != nil {
			tag = tombstone.TunnelTag
		}
		if _, ours := ownership.ParseTag(i.Tag); ours {
			b.add(h.End, Delete, 0, SetTag{Interface: RefTo(i), Tag: tag}, Drift{Field: "tag", Desired: tag, Actual: i.Tag}, "the VLL is released")
		}
	}
}

// endLinkLoss sets up a port that the agent set down because of the far end's link. This happens before other
// changes to the end. It also happens for ends that are blocked and for ends that the intent no longer names.
// To these ends the plan makes no other changes.
func (b *operationBuilder) endLinkLoss(h *EndInterface) {
	if i := h.Interface; h.isPort() && b.isDownForLinkLoss(i) {
		b.add(h.End, Detach, 0, SetAdmin{RefTo(i), true}, Drift{Field: "admin_up", Desired: "true", Actual: "false"},
			"the port is down because the far end had lost its link").Follows = true
	}
}

// isDownForLinkLoss reports whether the port is down and, according to the journal, the agent set it down
// because of the far end's link.
func (d *differ) isDownForLinkLoss(port *observe.Interface) bool {
	return !port.AdminUp && slices.ContainsFunc(d.ports[port.Name], func(claim ownership.Claim) bool { return claim.LinkLoss })
}

// wantsDown reports whether the intent requires the end's access to be down, and no other user uses the port.
func (d *differ) wantsDown(end intent.Key) bool {
	at, present := d.present[end]
	reason := d.blocked[end]
	return present && !d.in.Present[at].AccessUp() && (reason == nil || reason.Code != "port_in_use")
}

// giveBack sets up a port that the agent set down for its VLL or because of the far end's link. It does
// nothing if another VLL now uses the whole port, because that VLL determines the port's state.
func (b *operationBuilder) giveBack(h *EndInterface) {
	i := h.Interface
	taken := func(end intent.End) bool {
		return end.Access.Interface == i.Name && end.Access.Tagging == intent.Untagged && b.blocked[end.Key] == nil
	}
	if b.shutByUs(i) && !slices.ContainsFunc(b.in.Present, taken) {
		b.raised[i.Index] = true
		b.setAdmin(h.End, RefTo(i), 0, true, "the port is down because its VLL, or the far end's link, was down")
	}
}

func (b *operationBuilder) detach(h *EndInterface, why string) {
	to := b.Connects[h.Interface.Index]
	b.leaveL2(h.End, h.Interface, Ref{Index: to, Name: b.NameOf(to)}, why)
}

// leaveL2 takes an interface out of L2. This removes the interface's cross-connect, or takes the interface
// out of its bridge domain. leaveL2 adds only one such operation for each interface.
func (b *operationBuilder) leaveL2(end intent.Key, i *observe.Interface, to Ref, why string) {
	if b.detached[i.Index] {
		return
	}
	b.detached[i.Index] = true
	drift := Drift{Field: "xconnect", Desired: "", Actual: to.Name}
	b.add(end, Detach, 0, ClearConnect{RefTo(i), to}, drift, "%s", why)
}

// isolate takes these interfaces of an end out of L2. During a test, no frame of a customer may enter the
// tunnel, and no test frame may reach a customer. isolate is not called for a port that another user has
// cross-connected or bridged, because the port's end is then blocked by a conflict.
func (b *operationBuilder) isolate(end intent.Key, refs ...Ref) {
	const why = "the tunnel is tested before the customer is joined to it"
	for _, ref := range refs {
		if to, connected := b.Connects[ref.Index]; connected {
			b.leaveL2(end, b.ByIndex(ref.Index), Ref{Index: to, Name: b.NameOf(to)}, why)
		} else if bridge, bridged := b.Bridged[ref.Index]; bridged {
			b.leaveL2(end, b.ByIndex(ref.Index), Ref{Index: observe.NoIndex, Name: fmt.Sprintf("bridge domain %d", bridge)}, why)
		}
	}
}

// access returns the end's access, and plans its creation if it is missing. It is called for all ends before
// build is called, because the ends of a local cross-connect refer to each other's access.
func (b *operationBuilder) access(end intent.End) Ref {
	if existing, _ := b.serving(end); existing != nil {
		return RefTo(existing)
	}
	port := b.ByName(end.Access.Interface)
	if end.Access.Tagging == intent.Untagged {
		return RefTo(port)
	}
	id := b.freeID(port.Index, end.Access)
	sub := Ref{Index: observe.NoIndex, Made: Made{end.Key, Access}, Name: fmt.Sprintf("%s.%d", port.Name, id)}
	b.add(end.Key, Create, 1, CreateSub{RefTo(port), id, end.Access, sub},
		Drift{Field: "exists", Desired: "true", Actual: "false"}, "the sub-interface is missing")
	return sub
}

// freeID returns an unused sub-interface ID. For an access with a single tag, this is the number of the VLAN
// if possible, because the ID is a part of the interface's name. Otherwise it is the lowest unused ID that is
// at least firstFreeID.
func (b *operationBuilder) freeID(port uint32, a intent.Access) uint32 {
	used := b.ids[port]
	if used == nil {
		used = make(map[uint32]bool)
		for _, sub := range b.Subs(port) {
			if b.leaving[sub.Index] == nil {
				used[sub.Sub.ID] = true
			}
		}
		b.ids[port] = used
	}
	id := uint32(a.Outer)
	if a.Tagging.Tags() != 1 {
		id = firstFreeID
	}
	for used[id] {
		id = max(id, firstFreeID-1) + 1
	}
	used[id] = true
	return id
}

// firstFreeID is larger than every VLAN number. So no other sub-interface gets the ID that the sub-interface
// of a VLAN needs.
const firstFreeID = 4096

// build plans the operations that create the end's remaining objects and bring all its objects to their
// intended state. access is the end's access, as returned by the method access.
func (b *operationBuilder) build(end intent.End, access Ref) {
	if end.IsProbe() {
		tunnel := b.tunnelRef(end)
		b.tag(end, tunnel)
		b.isolate(end.Key, tunnel)
		b.raiseTunnel(end, tunnel)
		return
	}
	b.tag(end, access)
	switch {
	case end.Tunnel.Encapsulation == intent.L2XC:
		b.rewrite(end, access, rewriteOf(end.Access.Tagging))
		b.portMTU(end, access)
		b.connect(end, access, b.refs[b.present[end.Other()]])
	case end.Testing: // the access is outside L2 during a test, where VPP keeps no tag rewrite
		tunnel := b.tunnelRef(end)
		b.tag(end, tunnel)
		b.portMTU(end, access)
		b.portMTU(end, tunnel)
		b.isolate(end.Key, access, tunnel)
		b.raiseTunnel(end, tunnel)
	default:
		b.rewrite(end, access, rewriteOf(end.Access.Tagging))
		tunnel := b.tunnelRef(end)
		b.tag(end, tunnel)
		b.rewrite(end, tunnel, 0)
		b.portMTU(end, access)
		b.portMTU(end, tunnel)
		b.connect(end, access, tunnel)
		b.connect(end, tunnel, access)
		b.raiseTunnel(end, tunnel)
	}
	b.setPolicer(end, access)
	b.admin(end, access)
}

func (b *operationBuilder) tunnelRef(end intent.End) Ref {
	var ref Ref
	if _, existing := b.serving(end); existing != nil {
		ref = RefTo(existing)
	} else {
		ref = Ref{Index: observe.NoIndex, Made: Made{end.Key, Tunnel}, Name: end.Tunnel.Kind().NamePrefix + "<new>"}
		b.add(end.Key, Create, 0, CreateTunnel{end.Tunnel, ref},
			Drift{Field: "exists", Desired: "true", Actual: "false"}, "the tunnel is missing")
	}
	b.mtu(end, ref)
	return ref
}
