package plan

import (
	"cmp"
	"fmt"
	"slices"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
)

// findConflicts finds the ends that cannot be created or removed, in addition to the ends that are already
// blocked. The status of a reason is "conflict" if another user's objects are in conflict with the end. It is
// "pending" if the end waits for something, for example for its port, and "failed" if this VPP does not
// support the end's tunnel.
func (d *differ) findConflicts(in *intent.Intent) map[intent.Key]*Reason {
	found := make(map[intent.Key]*Reason)
	block := func(key intent.Key, reason *Reason) {
		if reason != nil && d.blocked[key] == nil && found[key] == nil {
			found[key] = reason
		}
	}
	d.relabelledConflicts(block)
	// Include the ends that this plan does not cover. A conflict may have appeared since these ends were
	// planned, and has to be reported too.
	for _, end := range in.Present {
		if d.blocked[end.Key] != nil {
			continue
		}
		access, tunnel := d.serving(end)
		block(end.Key, d.accessConflict(end, access))
		block(end.Key, d.tunnelConflict(end, tunnel))
		block(end.Key, d.incomingXconnectConflict(end, access, tunnel))
	}
	// If one end of a local cross-connect is blocked, the other end is blocked too.
	for _, end := range in.Present {
		if end.Tunnel.Encapsulation != intent.L2XC {
			continue
		}
		other := d.blocked[end.Other()]
		if other == nil {
			other = found[end.Other()]
		}
		if other != nil {
			reason := *other
			reason.Message = "the other end: " + other.Message
			block(end.Key, &reason)
		}
	}
	for _, h := range d.endInterfaces {
		if d.leaving[h.Interface.Index] != nil {
			block(h.End, d.leavingConflict(h))
		}
	}
	return found
}

// accessConflict returns the reason why the end's access cannot be created or used, or nil. serving is the
// interface that already serves as access, or nil if the end has no access yet.
func (d *differ) accessConflict(end intent.End, serving *observe.Interface) *Reason {
	if end.IsProbe() {
		return nil
	}
	name := end.Access.Interface
	port := d.ByName(name)
	if port == nil {
		return pending("unknown_interface", name, "VPP has no interface %s", name)
	}
	if port.IsSub() || d.TunnelAt(port.Index) != nil {
		return pending("unknown_interface", Describe(port), "%s is not a port", name)
	}
	if bond, isMember := d.Bonds.Of[port.Index]; isMember {
		return conflict("port_in_use", d.describe(bond), "%s is a member of %s, which gets all frames received on it: order the line on %s",
			name, d.describe(bond), d.NameOf(bond))
	}
	owner := d.byIndex[port.Index]
	if owner != nil && owner.End != end.Key && d.leaving[port.Index] == nil {
		return conflict("port_in_use", Describe(port), "the whole port %s carries VLL end %s", name, owner.End)
	}
	if bridge, bridged := d.Bridged[port.Index]; bridged {
		return conflict("port_in_use", Describe(port), "%s is in bridge domain %d", name, bridge)
	}
	if to, connected := d.Connects[port.Index]; connected && !d.connectIsOurs(port, to, owner) {
		return conflict("port_in_use", Describe(port), "%s is cross-connected to %s", name, d.describe(to))
	}
	if end.Access.Tagging == intent.Untagged {
		if reason := d.wholePortConflict(end, port); reason != nil {
			return reason
		}
		return d.classifierConflict(end, port)
	}
	if reason := d.subInterfaceConflict(end, port, serving); reason != nil {
		return reason
	}
	if reason := d.classifierConflict(end, serving); reason != nil {
		return reason
	}
	return d.portDownConflict(end, port, serving)
}

// portDownConflict returns a reason if the port of a sub-interface is down and the agent must not set it up.
// A sub-interface comes up only under a port that is up. The agent sets the port up for the sub-interface,
// except if another user has tagged the port or given it an address. Such a port may be down on purpose
// (docs/adr/0012).
func (d *differ) portDownConflict(end intent.End, port, serving *observe.Interface) *Reason {
	if port.AdminUp || !end.AdminUp || serving != nil && serving.AdminUp || d.shutByUs(port) {
		return nil
	}
	shut := func(format string, args ...any) *Reason {
		return pending("port_down", Describe(port), "%s is down and %s: set it up, and the VLL follows", port.Name, fmt.Sprintf(format, args...))
	}
	if _, ours := ownership.ParseTag(port.Tag); port.Tag != "" && !ours {
		return shut("has the foreign tag %q", port.Tag)
	}
	if len(port.Addresses) > 0 {
		return shut("has the address %s", port.Addresses[0])
	}
	return nil
}

// shutByUs reports whether this plan releases the port, and the port is down because the agent set it down.
// The agent sets a port down if its VLL is shut down, or if the far end has lost its link.
func (d *differ) shutByUs(port *observe.Interface) bool {
	h := d.leaving[port.Index]
	return h != nil && h.isPort() && !port.AdminUp && (d.wasUp(h.End, port) || d.isDownForLinkLoss(port))
}

// wasUp reports whether a port was up when the end took it. It uses the journal. If the journal has no entry
// and the end is down because of the far end's link, wasUp returns true. If the journal has no entry and the
// end is not down for this reason, wasUp reports whether the port is up now.
func (d *differ) wasUp(end intent.Key, port *observe.Interface) bool {
	owner := end
	if h := d.byIndex[port.Index]; h != nil {
		owner = h.End // the next owner leaves the port in the state that the previous owner found
	}
	for _, claim := range d.ports[port.Name] {
		if claim.Key() == owner {
			return claim.WasUp
		}
	}
	if at, present := d.present[owner]; present && d.in.Present[at].UNILinkDown {
		return true // the agent set the port down because of the far end's link, so the port was up before
	}
	return port.AdminUp
}

// connectIsOurs reports whether the agent created the cross-connect of a port. This is the case if the
// cross-connect leads to an interface of the agent. If the port has an owner, the interface must belong to
// the owner's VLL.
func (d *differ) connectIsOurs(port *observe.Interface, to uint32, owner *EndInterface) bool {
	if target := d.byIndex[to]; target != nil {
		return owner == nil || target.End.VLL == owner.End.VLL
	}
	return false
}

func (d *differ) describe(index uint32) string {
	if i := d.ByIndex(index); i != nil {
		return Describe(i)
	}
	return fmt.Sprintf("sw_if_index %d, which is no more", index)
}

// subInterfaceConflict returns a conflict if the end's sub-interface and an existing sub-interface would take
// frames from each other. serving is the end's own sub-interface, or nil if it has to be created.
//
// VPP gives each frame to the most specific sub-interface that matches it. A new sub-interface must not take
// frames of an existing sub-interface, and an existing sub-interface must not take frames of the end. The
// sub-interface "default" takes the frames of all VLANs that have no sub-interface, and its creator needs
// these frames (docs/adr/0058). Once the end's own sub-interface exists, only a more specific sub-interface
// can take frames from it.
func (d *differ) subInterfaceConflict(end intent.End, port, serving *observe.Interface) *Reason {
	frames := end.Access.Frames()
	for existing := range d.subs.overlapping(port.Index, end.Access) {
		h := d.byIndex[existing.Index]
		switch {
		case existing == serving, d.leaving[existing.Index] != nil, h != nil && h.End == end.Key:
			continue
		case serving != nil && existing.Sub.Frames().Rank >= frames.Rank:
			continue
		case h != nil:
			return conflict("foreign_subinterface", Describe(existing), "frames of VLAN %s on %s are carried by VLL end %s on %s",
				vlan(end.Access), port.Name, h.End, existing.Name)
		}
		return conflict("foreign_subinterface", Describe(existing), "VLAN %s on %s shares frames with %s, which takes %s, %s",
			vlan(end.Access), port.Name, existing.Name, taken(existing.Sub), d.notOurs(existing))
	}
	return nil
}

// taken describes the frames that a sub-interface takes.
func taken(sub observe.SubInterface) string {
	kind := "dot1q"
	if sub.Dot1ad {
		kind = "dot1ad"
	}
	further := " with any further tags"
	if sub.Exact {
		further = ""
	}
	switch sub.Selection {
	case observe.DefaultSub:
		return "all tagged frames that no other sub-interface takes"
	case observe.UntaggedSub:
		return "untagged frames"
	case observe.OtherThanTags:
		return "frames by other than their tags"
	case observe.AnyOuter:
		return kind + " frames of any outer VLAN"
	case observe.AnyInner:
		return fmt.Sprintf("%s %d with any inner VLAN", kind, sub.Outer)
	}
	if sub.Tags == 2 {
		return fmt.Sprintf("%s %d.%d%s", kind, sub.Outer, sub.Inner, further)
	}
	return fmt.Sprintf("%s %d%s", kind, sub.Outer, further)
}

func vlan(a intent.Access) string {
	if a.Inner == 0 {
		return fmt.Sprint(a.Outer)
	}
	return fmt.Sprintf("%d.%d", a.Outer, a.Inner)
}

// wholePortConflict returns a conflict if another user has configured anything on the port. The agent never
// takes such a port.
func (d *differ) wholePortConflict(end intent.End, port *observe.Interface) *Reason {
	inUse := func(object *observe.Interface, format string, args ...any) *Reason {
		return conflict("port_in_use", Describe(object), "%s %s", port.Name, fmt.Sprintf(format, args...))
	}
	for _, sub := range d.Subs(port.Index) {
		if d.leaving[sub.Index] == nil {
			return inUse(sub, "has the sub-interface %s", sub.Name)
		}
	}
	if len(port.Addresses) > 0 {
		return inUse(port, "has the address %s", port.Addresses[0])
	}
	if linux, paired := d.LCP[port.Index]; paired {
		return inUse(port, "is paired with the Linux interface %s", linux)
	}
	if use, used := d.Uses[port.Index]; used {
		return conflict("port_in_use", d.describe(use.Object), "%s %s", port.Name, use.How)
	}
	if d.Policed[port.Index] && !d.policedByUs(port.Index) {
		return inUse(port, "has a policer that the agent did not apply")
	}
	return nil
}

// PortsToTake returns the ports that other clients may use and that these intents need, sorted by index.
// These are the ports that ends want as a whole and that do not have the ends' tags yet. The ports that the
// agent is about to set down because of the far end's link are returned too.
func PortsToTake(s *observe.Snapshot, ins ...*intent.Intent) []*observe.Interface {
	var ports []*observe.Interface
	for _, in := range ins {
		for _, end := range in.Present {
			if end.Access.Tagging != intent.Untagged {
				continue
			}
			port := s.ByName(end.Access.Interface)
			if port == nil || port.IsSub() {
				continue
			}
			if tag, ours := ownership.ParseTag(port.Tag); !ours || tag.Key != end.Key || end.UNILinkDown && port.AdminUp {
				ports = append(ports, port)
			}
		}
	}
	slices.SortFunc(ports, func(a, b *observe.Interface) int { return cmp.Compare(a.Index, b.Index) })
	return slices.Compact(ports)
}

// tunnelConflict returns the reason why the end's tunnel cannot be created or used, or nil. serving is the
// interface that already serves as tunnel, or nil if the end has no tunnel yet.
func (d *differ) tunnelConflict(end intent.End, serving *observe.Interface) *Reason {
	t := end.Tunnel
	if !d.Supported[observe.Capability(t.Encapsulation)] {
		return &Reason{Status: "failed", Code: "unsupported",
			Message: fmt.Sprintf("this VPP has no %s: its messages are absent from the message table", t.Encapsulation)}
	}
	if t.Encapsulation == intent.L2XC {
		return nil
	}
	if why := t.Kind().Refuses(t, d.Supported[observe.CanGREKeys]); why != "" {
		return &Reason{Status: "failed", Code: "unsupported", Message: why}
	}
	if reason := d.localAddressConflict(t); reason != nil {
		return reason
	}
	if serving != nil && len(d.duplicateTunnels) == 0 { // the serving tunnel is the only one with its key
		return nil
	}
	for existing := range d.tunnelsWithKey(t.Identity()) {
		h, i := d.byIndex[existing.Index], d.ByIndex(existing.Index)
		switch {
		case d.leaving[existing.Index] != nil, h != nil && h.End == end.Key:
			continue
		case h != nil:
			return conflict("foreign_tunnel", Describe(i), "%s with the same key carries VLL end %s", i.Name, h.End)
		case i == nil:
			return conflict("foreign_tunnel", d.describe(existing.Index), "a tunnel with the same key exists")
		}
		return conflict("foreign_tunnel", Describe(i), "%s has the same key, %s", i.Name, d.notOurs(i))
	}
	return nil
}

// localAddressConflict returns a reason unless an interface in the tunnel's table is up and has the tunnel's
// local address.
func (d *differ) localAddressConflict(t intent.Tunnel) *Reason {
	missing := func(drift Drift, format string, args ...any) *Reason {
		reason := pending("local_address_missing", drift.Object, format, args...)
		reason.Drift = &drift
		return reason
	}
	existing := d.ByAddress(t.Table, t.Local)
	bond, isMember := uint32(0), false
	if existing != nil {
		bond, isMember = d.Bonds.Of[existing.Index]
	}
	switch {
	case isMember:
		lost := Drift{Object: Describe(existing), Field: "bond", Desired: "", Actual: d.NameOf(bond)}
		return missing(lost, "%s, which has the address %s, is a member of %s, which gets all frames received on it: move the address there",
			existing.Name, t.Local, d.NameOf(bond))
	case existing != nil && existing.AdminUp:
		return nil
	case existing != nil:
		shut := Drift{Object: Describe(existing), Field: "admin_up", Desired: "true", Actual: "false"}
		return missing(shut, "%s, which has the address %s, is down: set it up", existing.Name, t.Local)
	}
	absent := Drift{Object: t.Local.String(), Field: "exists", Desired: "true", Actual: "false"}
	family := [2]string{"IPv4", "IPv6"}[observe.Family(t.Local)]
	var elsewhere *observe.Interface
	used := t.Table == 0
	for _, i := range d.Interfaces {
		for _, prefix := range i.Addresses {
			if prefix.Addr() == t.Local {
				elsewhere = i
			}
			used = used || observe.Family(prefix.Addr()) == observe.Family(t.Local) && i.TableOf(prefix.Addr()) == t.Table
		}
	}
	switch {
	case elsewhere != nil:
		moved := Drift{
			Object: Describe(elsewhere), Field: "table", Desired: fmt.Sprint(t.Table), Actual: fmt.Sprint(elsewhere.TableOf(t.Local)),
		}
		return missing(moved, "%s has the address %s in the %s table %d, and the portal wants its tunnels in table %d:"+
			" move it there, or correct the router's underlay table in the portal",
			elsewhere.Name, t.Local, family, elsewhere.TableOf(t.Local), t.Table)
	case !used:
		return missing(absent, "no interface of this router has an address in the %s table %d, in which the portal wants its tunnels:"+
			" make the table and put the loopback with %s and the links into it, or correct the router's underlay table in the portal",
			family, t.Table, t.Local)
	case t.Table != 0:
		return missing(absent, "no interface of this router has the address %s in the %s table %d", t.Local, family, t.Table)
	}
	return missing(absent, "no interface of this router has the address %s", t.Local)
}

// leavingConflict returns a conflict if another user sends frames into an interface that is to be replaced.
// The replacement usually gets the same index, and would then receive these frames, so the agent keeps the
// interface. There is no such conflict in two cases. If the VLL is removed, the agent deletes all interfaces
// of the VLL in any case (see Plan.SentInto). A released port keeps its index.
func (d *differ) leavingConflict(h *EndInterface) *Reason {
	for from := range d.sendersInto(h.Interface.Index) {
		switch sender := d.byIndex[from]; {
		case sender != nil && d.mayChange(sender.End):
			continue
		case sender == nil && (d.removed[h.End] || h.isPort()):
			continue
		}
		return conflict("foreign_xconnect", d.describe(from), "%s sends into %s, which would have to go",
			d.describe(from), Describe(h.Interface))
	}
	return nil
}

// sentInto returns the value of Plan.SentInto. It is needed because VPP keeps a cross-connect after it has
// deleted the target of the cross-connect.
func (b *operationBuilder) sentInto() map[uint32]*Reason {
	found := make(map[uint32]*Reason)
	for _, c := range b.connects {
		from, to := c.from(), c.to()
		i, h := b.ByIndex(to), b.leaving[to]
		if found[to] != nil || i != nil && (h == nil || h.isPort()) {
			continue
		}
		if h := b.byIndex[from]; h == nil || !b.mayChange(h.End) { // the agent changes its own cross-connects to the right target
			found[to] = conflict("foreign_xconnect", b.describe(from), "%s sends into sw_if_index %d, which this end's new interface got",
				b.describe(from), to)
		}
	}
	return found
}

// incomingXconnectConflict returns a conflict if another user's interface sends frames into the end's access
// or tunnel. These frames would reach the customer, or leave together with the customer's frames. VPP stores
// the target of a cross-connect by index, and keeps the cross-connect after the target is deleted. Even a new
// interface can therefore receive such frames.
func (d *differ) incomingXconnectConflict(end intent.End, access, tunnel *observe.Interface) *Reason {
	for _, side := range d.sides(end, access, tunnel) {
		if side == nil {
			continue
		}
		for from := range d.sendersInto(side.Index) {
			if h := d.byIndex[from]; h != nil && (h.End.VLL == end.VLL || d.mayChange(h.End)) || d.serves(end, from) {
				continue
			}
			return conflict("foreign_xconnect", d.describe(from), "%s sends into %s", d.describe(from), Describe(side))
		}
	}
	return nil
}

// serves reports whether the interface with this index serves the end's VLL. It also returns true for a port
// of the VLL whose claim the journal has lost.
func (d *differ) serves(end intent.End, index uint32) bool {
	is := func(i *observe.Interface) bool { return i != nil && i.Index == index }
	for _, e := range []intent.End{end, d.otherEnd(end)} {
		access, tunnel := d.serving(e)
		if sides := d.sides(e, access, tunnel); slices.ContainsFunc(sides[:], is) {
			return true
		}
	}
	return false
}

// sides returns the existing interfaces that serve, or will serve, as the end's access and tunnel. A missing
// interface is nil.
func (d *differ) sides(end intent.End, access, tunnel *observe.Interface) [2]*observe.Interface {
	if access == nil && end.Access.Tagging == intent.Untagged {
		access = d.ByName(end.Access.Interface)
	}
	return [2]*observe.Interface{access, tunnel}
}

// otherEnd returns the other end of a local cross-connect. It returns a zero End if the intent does not have
// that end.
func (d *differ) otherEnd(end intent.End) intent.End {
	if at, found := d.present[end.Other()]; found {
		return d.in.Present[at]
	}
	return intent.End{}
}

// mayChange reports whether the plan may change the end's interfaces: the intent names the end as present or removed,
// and the end is not blocked.
func (d *differ) mayChange(key intent.Key) bool { return d.named(key) && d.blocked[key] == nil }
