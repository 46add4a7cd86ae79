package vppcontract

import (
	"testing"

	"go.fd.io/govpp/binapi/bond"
	interfaces "go.fd.io/govpp/binapi/interface"
)

func TestASubinterfaceOfABondsMemberIsMadeAndGetsNoFrame(t *testing.T) {
	both(t, func(d *device) {
		member, client := d.cable(7), d.connectStats()
		of := d.bondOf(member)
		ofMember, ofBond := d.subif(member, 100), d.subif(of, 100)
		d.setFlags(ofMember, up)
		d.setFlags(ofBond, up)
		d.arrive(client, 7, member, vlanTag{0x8100, 100})
		if got := d.combined(client, "/if/rx", uint32(ofMember)).Packets(); got != 0 {
			d.Errorf("the member's sub-interface got %d frames", got)
		}
		if got := d.combined(client, "/if/rx", uint32(ofBond)).Packets(); got != frames {
			d.Errorf("the bond's sub-interface got %d frames, want %d", got, frames)
		}
	})
}

// bondAt is what VPP shows of a bond.
func (d *device) bondAt(at index) *bond.SwBondInterfaceDetails {
	d.Helper()
	bonds := dump[*bond.SwBondInterfaceDetails](d, &bond.SwBondInterfaceDump{SwIfIndex: at})
	if len(bonds) != 1 {
		d.Fatalf("%d bonds at %d", len(bonds), at)
	}
	return bonds[0]
}

// TestOnlyTheActiveMembersShowWhetherABondHasALink: a bond that is set down takes no link from its members, and the flag of a
// bond's own link says whether the bond is up, whatever its members have.
func TestOnlyTheActiveMembersShowWhetherABondHasALink(t *testing.T) {
	both(t, func(d *device) {
		one, other := d.port(), d.port()
		d.setFlags(one, up)
		d.setFlags(other, up)
		of := d.bondOf(one, other)
		shows := func(when string, members, active uint32, linked bool) {
			d.Helper()
			b := d.bondAt(of)
			if got := d.at(of).Flags&linkUp != 0; b.Members != members || b.ActiveMembers != active || got != linked {
				d.Errorf("%s: %d members, %d active, link %t", when, b.Members, b.ActiveMembers, got)
			}
		}
		shows("both are up", 2, 2, true)
		d.setFlags(one, 0)
		shows("one is down", 2, 1, true)
		d.setFlags(other, 0)
		shows("both are down", 2, 0, true)
		d.setFlags(of, 0)
		shows("the bond is down", 2, 0, false)
		d.setFlags(one, up)
		if d.at(one).Flags&(up|linkUp) != up|linkUp {
			d.Error("the member of a bond that is down has no link")
		}
		shows("a member is up again", 2, 1, false)
		d.setFlags(of, up)
		d.setFlags(one, 0)
		shows("the bond is up without a member", 2, 0, true)
	})
}

func TestABondAndAMemberOfAnotherBondAreNoMembers(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		of := d.bondOf(port)
		other := d.bondOf()
		refused(d, &bond.BondAddMember{SwIfIndex: port, BondSwIfIndex: other}, &bond.BondAddMemberReply{}, -81)
		refused(d, &bond.BondAddMember{SwIfIndex: of, BondSwIfIndex: other}, &bond.BondAddMemberReply{}, -71)
		do(d, &interfaces.SwInterfaceSetFlags{SwIfIndex: of}, &interfaces.SwInterfaceSetFlagsReply{})
	})
}
