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
	for _, h := range d.holdings {
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
	for _, h := range d.holdings {
		if !d.isCarriedOut(h.End) && !d.wantsDown(h.End) {
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
	detached map[uint32]bool            // their cross-connects are removed by this plan
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

// release removes the cross-connects from and to an interface and deletes it. A port is not deleted but
// released.
func (b *operationBuilder) release(h *Holding) {
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

// releaseEnd returns the interfaces of a released end to their previous owner, or to none. They keep
// forwarding.
func (b *operationBuilder) releaseEnd(tombstone intent.Tombstone) {
	if !tombstone.Release {
		return
	}
	for h := range b.holdingsOf(tombstone.Key) {
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

// endLinkLoss sets a port up that is down because of the far end's link. It does so before other changes to
// the end, and also for ends that are blocked or no longer named, which are otherwise left unchanged.
func (b *operationBuilder) endLinkLoss(h *Holding) {
	if i := h.Interface; h.isPort() && b.isDownForLinkLoss(i) {
		b.add(h.End, Detach, 0, SetAdmin{RefTo(i), true}, Drift{Field: "admin_up", Desired: "true", Actual: "false"},
			"the port is down because the far end had lost its link").Follows = true
	}
}

// isDownForLinkLoss reports whether the port is down because the agent shut it for the far end's link,
// according to the journal.
func (d *differ) isDownForLinkLoss(port *observe.Interface) bool {
	return !port.AdminUp && slices.ContainsFunc(d.ports[port.Name], func(claim ownership.Claim) bool { return claim.LinkLoss })
}

// wantsDown reports whether the intent requires the end's access to be down and no other user of the port
// needs it up.
func (d *differ) wantsDown(end intent.Key) bool {
	at, present := d.present[end]
	reason := d.blocked[end]
	return present && !d.in.Present[at].AccessUp() && (reason == nil || reason.Code != "port_in_use")
}

// giveBack sets a port up that was shut for its VLL or for the far end's link, unless another VLL now uses
// the whole port and decides.
func (b *operationBuilder) giveBack(h *Holding) {
	i := h.Interface
	taken := func(end intent.End) bool {
		return end.Access.Interface == i.Name && end.Access.Tagging == intent.Untagged && b.blocked[end.Key] == nil
	}
	if b.shutByUs(i) && !slices.ContainsFunc(b.in.Present, taken) {
		b.raised[i.Index] = true
		b.setAdmin(h.End, RefTo(i), 0, true, "the port is down because its VLL, or the far end's link, was down")
	}
}

func (b *operationBuilder) detach(h *Holding, why string) {
	to := b.Connects[h.Interface.Index]
	b.leaveL2(h.End, h.Interface, Ref{Index: to, Name: b.nameOf(to)}, why)
}

// leaveL2 removes an interface's cross-connect with to, once.
func (b *operationBuilder) leaveL2(end intent.Key, i *observe.Interface, to Ref, why string) {
	if b.detached[i.Index] {
		return
	}
	b.detached[i.Index] = true
	drift := Drift{Field: "xconnect", Desired: "", Actual: to.Name}
	b.add(end, Detach, 0, ClearConnect{RefTo(i), to}, drift, "%s", why)
}

// isolate takes the end's access and tunnel out of L2. During a test, no frame of a customer may enter the
// tunnel, and no test frame may reach a customer. If another user connected or bridged the port, the end
// was found to be in conflict before.
func (b *operationBuilder) isolate(end intent.Key, refs ...Ref) {
	const why = "the tunnel is tested before the customer is joined to it"
	for _, ref := range refs {
		if to, connected := b.Connects[ref.Index]; connected {
			b.leaveL2(end, b.ByIndex(ref.Index), Ref{Index: to, Name: b.nameOf(to)}, why)
		} else if bridge, bridged := b.Bridged[ref.Index]; bridged {
			b.leaveL2(end, b.ByIndex(ref.Index), Ref{Index: observe.NoIndex, Name: fmt.Sprintf("bridge domain %d", bridge)}, why)
		}
	}
}

func (d *differ) nameOf(index uint32) string {
	if i := d.ByIndex(index); i != nil {
		return i.Name
	}
	return fmt.Sprintf("sw_if_index %d", index)
}

// access finds or creates the end's access. The ends of a local cross-connect can then refer to each
// other's access.
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

// freeID returns an unused sub-interface ID: the VLAN for a single tag, which makes a readable name,
// otherwise the lowest free one.
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

// firstFreeID is above every VLAN, so that other IDs do not use up an ID that a VLAN needs.
const firstFreeID = 4096

// build creates the rest of an end and brings everything to its intended state.
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
	case end.Testing: // outside L2, where VPP keeps no tag rewrite
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

// newTunnel is the name of a tunnel before VPP names it.
var newTunnel = map[intent.Encapsulation]string{intent.VXLAN: "vxlan_tunnel<new>", intent.GENEVE: "geneve_tunnel<new>", intent.GRE: "gre<new>"}

func (b *operationBuilder) tunnelRef(end intent.End) Ref {
	var ref Ref
	if _, existing := b.serving(end); existing != nil {
		ref = RefTo(existing)
	} else {
		ref = Ref{Index: observe.NoIndex, Made: Made{end.Key, Tunnel}, Name: newTunnel[end.Tunnel.Encapsulation]}
		b.add(end.Key, Create, 0, CreateTunnel{end.Tunnel, ref},
			Drift{Field: "exists", Desired: "true", Actual: "false"}, "the tunnel is missing")
	}
	if end.Tunnel.Encapsulation == intent.GRE {
		b.mtu(end, ref)
	}
	return ref
}
