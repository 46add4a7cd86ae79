package plan

import (
	"slices"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
)

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
