package plan

import (
	"fmt"
	"slices"
	"strings"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/tunnel"
)

func rewriteOf(t intent.Tagging) uint32 {
	switch t.Tags() {
	case 1:
		return PopOne
	case 2:
		return PopTwo
	}
	return 0
}

// tag tags an interface with the end and its revision. It does not replace another user's tag on a port. For
// such a port, the journal records that the end uses it.
func (b *operationBuilder) tag(end intent.End, ref Ref) {
	actual := ""
	if h := b.byIndex[ref.Index]; h != nil && h.Claim == nil {
		if h.End == end.Key && h.Revision == end.Revision {
			return
		}
		actual = h.Interface.Tag
	} else if i := b.ByIndex(ref.Index); i != nil && i.Tag != "" {
		return
	}
	want := ownership.Tag{Key: end.Key, Revision: end.Revision}.String()
	b.add(end.Key, Tag, 0, SetTag{Interface: ref, Tag: want}, Drift{Field: "tag", Desired: want, Actual: actual},
		"the tag names end and revision")
}

// rewrite sets the tag rewrite of an interface: pop is PopOne, PopTwo, or 0 for no rewrite. VPP stores a
// rewrite by interface index. If a rewrite was set on an interface in L3 mode, VPP keeps the rewrite after
// the interface is deleted. The next interface with the same index uses this rewrite as soon as it is
// cross-connected (set_int_l2_mode in vnet/l2/l2_input.c only adds feature bits). Therefore the agent also
// has to set the rewrite of tunnels and whole ports.
func (b *operationBuilder) rewrite(end intent.End, ref Ref, pop uint32) {
	actual := uint32(0)
	if i := b.ByIndex(ref.Index); i != nil && !b.detached[i.Index] { // leaving L2 clears the rewrite
		actual = i.Rewrite
	}
	if actual == pop {
		return
	}
	why := "the tags that select the VLL are popped on entry and pushed on exit"
	if pop == 0 {
		why = "a tag rewrite that an earlier interface of this index left behind would change the customer's frames"
	}
	b.add(end.Key, Set, 0, SetRewrite{ref, pop}, Drift{Field: "rewrite", Desired: fmt.Sprint(pop), Actual: fmt.Sprint(actual)}, "%s", why)
}

// mtu increases the MTU of a tunnel that drops frames longer than its MTU. The new MTU is large enough for
// the longest frame that the line must carry.
func (b *operationBuilder) mtu(end intent.End, ref Ref) {
	standard := end.Tunnel.Kind().MTU
	actual := b.l3MTU(ref)
	if standard != 0 && actual < uint32(end.Frame) {
		want := max(uint32(end.Frame), standard)
		b.add(end.Key, Set, 0, SetMTU{ref, want}, Drift{Field: "mtu", Desired: fmt.Sprint(want), Actual: fmt.Sprint(actual)},
			"%s drops frames longer than the tunnel's MTU, and %d bytes are promised", strings.ToUpper(string(end.Tunnel.Encapsulation)), end.Frame)
	}
}

// l3MTU returns the L3 MTU of an interface (bytes). It returns 0 if the interface has no L3 MTU or does not
// exist yet.
func (b *operationBuilder) l3MTU(ref Ref) uint32 {
	if i := b.ByIndex(ref.Index); i != nil {
		return i.L3MTU
	}
	return 0
}

func (b *operationBuilder) connect(end intent.End, from, to Ref) {
	actual := ""
	if i := b.ByIndex(from.Index); i != nil && !b.detached[i.Index] {
		if existing, connected := b.Connects[i.Index]; connected {
			if existing == to.Index {
				return
			}
			actual = b.NameOf(existing)
		}
	}
	b.add(end.Key, Connect, 0, SetConnect{from, to}, Drift{Field: "xconnect", Desired: to.Name, Actual: actual},
		"frames from %s go to %s", from.Name, to.Name)
}

// raiseTunnel sets a tunnel up. Depending on its kind, a new tunnel is up or down.
func (b *operationBuilder) raiseTunnel(end intent.End, ref Ref) {
	up := end.Tunnel.Kind().UpWhenNew
	if i := b.ByIndex(ref.Index); i != nil {
		up = i.AdminUp
	}
	if !up {
		b.setAdmin(end.Key, ref, 1, true, "the tunnel is down")
	}
}

// admin brings the access to its intended admin state. A sub-interface cannot come up under a port that is
// down, so admin sets the port up first. This is the only change that the agent makes to a port that a line
// does not use as a whole.
func (b *operationBuilder) admin(end intent.End, ref Ref) {
	b.shutMembers(end)
	up := false
	if i := b.ByIndex(ref.Index); i != nil {
		up = i.AdminUp
	}
	wanted := end.AccessUp()
	if up == wanted {
		return
	}
	port := b.ByName(end.Access.Interface)
	if wanted && ref.Index != port.Index && !port.AdminUp && !b.raised[port.Index] {
		b.raised[port.Index] = true
		b.setAdmin(end.Key, RefTo(port), 0, true, "its sub-interfaces cannot come up while the port is down")
	}
	why := "the VLL is to be up"
	switch {
	case !end.AdminUp:
		why = "the VLL is to be down"
	case end.UNILinkDown:
		why = "the far end has lost its link"
	}
	b.setAdmin(end.Key, ref, 2, wanted, why).Follows = wanted && ref.Index == port.Index && b.isDownForLinkLoss(port)
}

func (b *operationBuilder) setAdmin(end intent.Key, ref Ref, rank int, up bool, why string) *Op {
	return b.add(end, Up, rank, SetAdmin{ref, up},
		Drift{Field: "admin_up", Desired: fmt.Sprint(up), Actual: fmt.Sprint(!up)}, "%s", why)
}

// If the setting intent.PortMTUs is on, portMTU sets the L3 MTU of a line's interface to the L3 MTU of the
// port. VPP uses the L3 MTU of a cross-connected interface only if the interface is a GRE tunnel. But vppcfg
// requires an MTU for every interface. It also requires that both sides of a cross-connect have the same MTU,
// and that this MTU does not exceed the MTU of the port (vppcfg 0.0.7, config/interface.py). A port that is
// used as a whole keeps its MTU.
func (b *operationBuilder) portMTU(end intent.End, ref Ref) {
	if !b.in.PortMTUs || end.Adopt || ref.Name == end.Access.Interface {
		return
	}
	want, actual := b.lineMTU(end), b.l3MTU(ref)
	if want == 0 || want == actual {
		return
	}
	b.add(end.Key, Set, 1, SetMTU{ref, want}, Drift{Field: "mtu", Desired: fmt.Sprint(want), Actual: fmt.Sprint(actual)},
		"for vppcfg both sides of a cross-connect have the MTU of the port").Follows = true
}

// lineMTU returns the L3 MTU (bytes) that both sides of the end's cross-connect need for vppcfg, or 0 if
// vppcfg accepts no MTU.
func (b *operationBuilder) lineMTU(end intent.End) uint32 {
	ports, mtu := []intent.Access{end.Access}, b.portL3MTU(end.Access)
	switch form := end.Tunnel.Kind().Vppcfg; {
	case end.Tunnel.Encapsulation == intent.L2XC:
		other := b.otherEnd(end).Access
		ports, mtu = append(ports, other), min(mtu, b.portL3MTU(other))
	case form == tunnel.AsPort: // VPP does not allow to change the link MTU
		_, serving := b.serving(end)
		if serving == nil || serving.LinkMTU > mtu || serving.LinkMTU < uint32(end.Frame) {
			return 0
		}
		mtu = serving.LinkMTU
	case form == tunnel.Unnamed:
		return 0
	}
	for _, port := range ports {
		if port.Tagging == intent.Untagged && b.portL3MTU(port) != mtu {
			return 0
		}
	}
	return mtu
}

func (b *operationBuilder) portL3MTU(a intent.Access) uint32 {
	if port := b.ByName(a.Interface); port != nil {
		return port.L3MTU
	}
	return 0
}

// If a bond of VPP is set down, the customer's side of the link stays up, because only the members of a bond
// have links (bond_interface_admin_up_down in vnet/bonding/device.c). So when the far end of the line has
// lost its link, the agent sets down the members too. The agent changes nothing else on the members of a bond
// (docs/adr/0059). For each member that the agent sets down, the journal has a claim until VPP shows the
// member as up again.

// shutMembers sets the members of the end's bond down while the far end has no link.
func (b *operationBuilder) shutMembers(end intent.End) {
	if !end.UNILinkDown {
		return
	}
	for _, member := range b.membersOf(end) {
		if member.AdminUp {
			b.setAdmin(end.Key, RefTo(member), 1, false, "the far end has lost its link, and a bond has one as long as its members have")
		}
	}
}

// raiseMembers sets members up again. These are the members that the agent set down because of the far end's
// link and that need not be down any longer.
func (b *operationBuilder) raiseMembers() {
	for _, claim := range b.members {
		if member := b.ByName(claim.Member); member != nil && !member.AdminUp && !b.keepsMemberDown(claim) {
			b.add(claim.Key(), Detach, 0, SetAdmin{RefTo(member), true}, Drift{Field: "admin_up", Desired: "true", Actual: "false"},
				"the member of a bond is down because the far end had lost its link").Follows = true
		}
	}
}

// membersOf returns the members if the end's access is a whole bond, and none for other ports.
func (d *differ) membersOf(end intent.End) (members []*observe.Interface) {
	port := d.ByName(end.Access.Interface)
	if port == nil || end.Access.Tagging != intent.Untagged {
		return nil
	}
	for _, index := range d.Bonds.Members[port.Index] {
		if member := d.ByIndex(index); member != nil {
			members = append(members, member)
		}
	}
	return members
}

// keepsMemberDown reports whether the intent still requires the claimed member to be down, and no other user
// uses the member's bond.
func (d *differ) keepsMemberDown(claim ownership.Claim) bool {
	at, present := d.present[claim.Key()]
	if !present || !d.in.Present[at].UNILinkDown || !d.wantsDown(claim.Key()) {
		return false
	}
	return slices.ContainsFunc(d.membersOf(d.in.Present[at]), func(member *observe.Interface) bool { return member.Name == claim.Member })
}

// memberClaims returns claims to the bond members that the agent has set down, or that this plan sets down,
// because of the far end's link.
func (d *differ) memberClaims(in *intent.Intent) []ownership.Claim {
	var claims []ownership.Claim
	claimed := make(map[string]bool)
	for _, end := range in.Present {
		if !end.UNILinkDown || d.blocked[end.Key] != nil {
			continue
		}
		for _, member := range d.membersOf(end) {
			isMember := func(claim ownership.Claim) bool { return claim.Member == member.Name }
			if member.AdminUp || slices.ContainsFunc(d.members, isMember) { // a member that another user has shut stays unclaimed
				claimed[member.Name] = true
				claims = append(claims, ownership.Claim{
					VLL: end.VLL, End: end.End, Revision: end.Revision, Member: member.Name, WasUp: true, LinkLoss: true,
				})
			}
		}
	}
	for _, claim := range d.members {
		if member := d.ByName(claim.Member); !claimed[claim.Member] && member != nil && !member.AdminUp {
			claims = append(claims, claim)
		}
	}
	return claims
}
