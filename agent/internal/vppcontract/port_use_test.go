package vppcontract

import (
	"testing"

	"go.fd.io/govpp/binapi/bond"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
)

func (d *device) unnumbered(of index) []*ip.IPUnnumberedDetails {
	d.Helper()
	return dump[*ip.IPUnnumberedDetails](d, &ip.IPUnnumberedDump{SwIfIndex: of})
}

func TestAnUnnumberedInterfaceNamesTheOneWhoseAddressesItUses(t *testing.T) {
	both(t, func(d *device) {
		lender, user := d.port(), d.port()
		d.address(lender, "10.9.0.1/24")
		set := &interfaces.SwInterfaceSetUnnumbered{SwIfIndex: lender, UnnumberedSwIfIndex: user, IsAdd: true}
		do(d, set, &interfaces.SwInterfaceSetUnnumberedReply{})
		if found := d.unnumbered(user); len(found) != 1 || found[0].SwIfIndex != user || found[0].IPSwIfIndex != lender {
			d.Errorf("of the user: %+v", found)
		}
		if found := d.unnumbered(lender); len(found) != 0 {
			d.Errorf("of the lender: %+v", found)
		}
		set.IsAdd = false
		do(d, set, &interfaces.SwInterfaceSetUnnumberedReply{})
		if found := d.unnumbered(user); len(found) != 0 {
			d.Errorf("afterwards: %+v", found)
		}
	})
}

func (d *device) table(of index, ip6 bool) uint32 {
	d.Helper()
	return do(d, &interfaces.SwInterfaceGetTable{SwIfIndex: of, IsIPv6: ip6}, &interfaces.SwInterfaceGetTableReply{}).VrfID
}

func TestAnInterfaceIsInOneTableOfEachFamily(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		refused(d, &interfaces.SwInterfaceSetTable{SwIfIndex: port, VrfID: 10}, &interfaces.SwInterfaceSetTableReply{}, -3)
		do(d, &ip.IPTableAddDel{IsAdd: true, Table: ip.IPTable{TableID: 10, IsIP6: true}}, &ip.IPTableAddDelReply{})
		do(d, &interfaces.SwInterfaceSetTable{SwIfIndex: port, VrfID: 10, IsIPv6: true}, &interfaces.SwInterfaceSetTableReply{})
		if four, six := d.table(port, false), d.table(port, true); four != 0 || six != 10 {
			d.Errorf("tables %d and %d", four, six)
		}
	})
}

func TestALinkLocalAddressExistsWhileIPv6IsEnabledButIsInNoDump(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		request := &ip.SwInterfaceIP6GetLinkLocalAddress{SwIfIndex: port}
		refused(d, request, &ip.SwInterfaceIP6GetLinkLocalAddressReply{}, -62)
		do(d, &ip.SwInterfaceIP6EnableDisable{SwIfIndex: port, Enable: true}, &ip.SwInterfaceIP6EnableDisableReply{})
		if found := do(d, request, &ip.SwInterfaceIP6GetLinkLocalAddressReply{}).IP; !found.ToIP().IsLinkLocalUnicast() {
			d.Errorf("the address is %s", found)
		}
		if dumped := d.addresses(port, true); len(dumped) != 0 {
			d.Errorf("dumped: %v", dumped)
		}
		do(d, &ip.SwInterfaceIP6EnableDisable{SwIfIndex: port}, &ip.SwInterfaceIP6EnableDisableReply{})
		refused(d, request, &ip.SwInterfaceIP6GetLinkLocalAddressReply{}, -62)
	})
}

func TestABondNamesItsMembers(t *testing.T) {
	both(t, func(d *device) {
		made := do(d, &bond.BondCreate2{Mode: bond.BOND_API_MODE_XOR, ID: 3}, &bond.BondCreate2Reply{}).SwIfIndex
		other := do(d, &bond.BondCreate2{Mode: bond.BOND_API_MODE_XOR, ID: none}, &bond.BondCreate2Reply{}).SwIfIndex
		if bonds := dump[*bond.SwBondInterfaceDetails](d, &bond.SwBondInterfaceDump{SwIfIndex: index(none)}); len(bonds) != 2 || bonds[0].InterfaceName != "BondEthernet3" {
			d.Errorf("%+v", bonds)
		}
		port := d.port()
		do(d, &bond.BondAddMember{SwIfIndex: port, BondSwIfIndex: made}, &bond.BondAddMemberReply{})
		if members := dump[*bond.SwMemberInterfaceDetails](d, &bond.SwMemberInterfaceDump{SwIfIndex: made}); len(members) != 1 || members[0].SwIfIndex != port {
			d.Errorf("%+v", members)
		}
		if members := dump[*bond.SwMemberInterfaceDetails](d, &bond.SwMemberInterfaceDump{SwIfIndex: other}); len(members) != 0 {
			d.Errorf("of the other: %+v", members)
		}
	})
}
