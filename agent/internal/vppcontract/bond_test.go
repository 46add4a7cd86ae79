package vppcontract

import (
	"fmt"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/bond"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/policer"
	"go.fd.io/govpp/binapi/vlib"
)

func TestASubinterfaceOfABondMemberCanBeCreatedButGetsNoFrames(t *testing.T) {
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

// bondAt returns VPP's details of a bond.
func (d *device) bondAt(at index) *bond.SwBondInterfaceDetails {
	d.Helper()
	bonds := dump[*bond.SwBondInterfaceDetails](d, &bond.SwBondInterfaceDump{SwIfIndex: at})
	if len(bonds) != 1 {
		d.Fatalf("%d bonds at %d", len(bonds), at)
	}
	return bonds[0]
}

// TestOnlyTheActiveMembersShowWhetherABondHasALink: setting a bond down takes down no link of its members.
// The flag of the bond's own link shows whether the bond is up, regardless of its members.
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

func TestABondOrAMemberOfAnotherBondCannotBeAMember(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		of := d.bondOf(port)
		other := d.bondOf()
		refused(d, &bond.BondAddMember{SwIfIndex: port, BondSwIfIndex: other}, &bond.BondAddMemberReply{}, -81)
		refused(d, &bond.BondAddMember{SwIfIndex: of, BondSwIfIndex: other}, &bond.BondAddMemberReply{}, -71)
		do(d, &interfaces.SwInterfaceSetFlags{SwIfIndex: of}, &interfaces.SwInterfaceSetFlagsReply{})
	})
}

// TestAPolicerOnABondGetsNoFramesAlthoughVPPReportsItAsEnabled: frames are received on the members. A
// classify table on the bond leads them to the policer.
func TestAPolicerOnABondGetsNoFramesAlthoughVPPReportsItAsEnabled(t *testing.T) {
	both(t, func(d *device) {
		if d.policesSubInterfaces() {
			d.Skip("from 26.06 on a policer is a feature of L2")
		}
		member, out, client := d.cable(7), d.cable(8), d.connectStats()
		of := d.bondOf(member)
		d.xconnect(of, out)
		d.xconnect(out, of)
		index := do(d, &policer.PolicerAdd{Name: policerName, Infos: slow()}, &policer.PolicerAddReply{}).PolicerIndex
		hits := func() uint64 {
			conform, exceed, violate := d.colours(client, index)
			return conform.Packets() + exceed.Packets() + violate.Packets()
		}
		do(d, &policer.PolicerInput{Name: policerName, SwIfIndex: of, Apply: true}, &policer.PolicerInputReply{})
		if shown := d.deviceInput(d.at(of).InterfaceName); !strings.Contains(shown, "policer-input") {
			d.Errorf("VPP shows %q", shown)
		}
		d.arrive(client, 7, member)
		if got := hits(); got != 0 {
			d.Errorf("the policer node got %d frames", got)
		}
		do(d, &policer.PolicerInput{Name: policerName, SwIfIndex: of}, &policer.PolicerInputReply{})
		d.classify(of, d.classified(index), true)
		d.arrive(client, 7, member)
		if conform, _, violate := d.colours(client, index); conform.Packets()+violate.Packets() != frames || violate.Packets() < frames/2 {
			d.Errorf("%d frames conform, %d are dropped", conform.Packets(), violate.Packets())
		}
	})
}

// TestFeaturesAreShownByIndexForAnyName: the CLI reads the part before the first dot as the name of a port.
func TestFeaturesAreShownByIndexForAnyName(t *testing.T) {
	both(t, func(d *device) {
		port := d.portUp()
		sub := d.subif(port, 100)
		for _, index := range []index{port, sub} {
			name := d.at(index).InterfaceName
			byIndex := send(d, &vlib.CliInband{Cmd: fmt.Sprintf("show interface features %d", index)}, &vlib.CliInbandReply{})
			byName := send(d, &vlib.CliInband{Cmd: "show interface features " + name}, &vlib.CliInbandReply{})
			if byIndex.Retval != 0 || byIndex.Reply != byName.Reply || !strings.HasPrefix(byIndex.Reply, "Feature paths configured on "+name+"...") {
				d.Errorf("%s by index: %d, %q", name, byIndex.Retval, byIndex.Reply)
			}
		}
		for _, words := range []string{"9999", "loop0.5.100", "loop0.5"} {
			if reply := send(d, &vlib.CliInband{Cmd: "show interface features " + words}, &vlib.CliInbandReply{}); reply.Retval == 0 {
				d.Errorf("%s: %q", words, reply.Reply)
			}
		}
	})
}
