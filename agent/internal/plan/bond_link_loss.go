package plan

import (
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
)

// VPP's bond that is set down takes no link from the other side: only its members have a link
// (bond_interface_admin_up_down in vnet/bonding/device.c). So for the far end's link the members are set down too, the one
// thing that the agent does to ports of a bond (docs/adr/0059). The journal has a claim for each, until VPP shows it up again.

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

// raiseMembers sets members up again that are down for the far end's link and are no longer to be so.
func (b *operationBuilder) raiseMembers() {
	for _, claim := range b.members {
		if member := b.ByName(claim.Member); member != nil && !member.AdminUp && !b.keepsMemberDown(claim) {
			b.add(claim.Key(), Detach, 0, SetAdmin{RefTo(member), true}, Drift{Field: "admin_up", Desired: "true", Actual: "false"},
				"the member of a bond is down because the far end had lost its link").Follows = true
		}
	}
}

// membersOf are the members of the bond that the end has whole, none for other ports.
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

// keepsMemberDown reports whether the intent still wants the claimed member down, and nobody else uses its bond.
func (d *differ) keepsMemberDown(claim ownership.Claim) bool {
	at, present := d.present[claim.Key()]
	if !present || !d.in.Present[at].UNILinkDown || !d.wantsDown(claim.Key()) {
		return false
	}
	for _, member := range d.membersOf(d.in.Present[at]) {
		if member.Name == claim.Member {
			return true
		}
	}
	return false
}

// memberClaims are claims to the members that are down for the far end's link, or are about to be set down.
func (d *differ) memberClaims(in *intent.Intent) []ownership.Claim {
	var claims []ownership.Claim
	claimed := make(map[string]bool)
	for _, end := range in.Present {
		if !end.UNILinkDown || d.blocked[end.Key] != nil {
			continue
		}
		for _, member := range d.membersOf(end) {
			if member.AdminUp || d.isClaimedMember(member.Name) { // one that somebody shut stays theirs
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

func (d *differ) isClaimedMember(name string) bool {
	for _, claim := range d.members {
		if claim.Member == name {
			return true
		}
	}
	return false
}
