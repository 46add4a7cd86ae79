package vppsim

import (
	"slices"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
)

// ipUseOperations handle all IP settings of an interface except its addresses.
func ipUseOperations() []operation {
	return []operation{
		on((*vpp).setUnnumbered, &interfaces.SwInterfaceSetUnnumberedReply{}),
		on((*vpp).unnumberedDump, &ip.IPUnnumberedDetails{}),
		on((*vpp).tableAddDel, &ip.IPTableAddDelReply{}),
		on((*vpp).setTable, &interfaces.SwInterfaceSetTableReply{}),
		on((*vpp).getTable, &interfaces.SwInterfaceGetTableReply{}),
		on((*vpp).enableIP6, &ip.SwInterfaceIP6EnableDisableReply{}),
		on((*vpp).linkLocal, &ip.SwInterfaceIP6GetLinkLocalAddressReply{}),
	}
}

// setUnnumbered makes one interface use the addresses of another interface.
func (v *vpp) setUnnumbered(c *call, m *interfaces.SwInterfaceSetUnnumbered) {
	reply := &interfaces.SwInterfaceSetUnnumberedReply{}
	lender, user := v.at(m.SwIfIndex), v.at(m.UnnumberedSwIfIndex)
	switch {
	case lender == nil, user == nil:
		reply.Retval = retvalInvalidInterface
	case m.IsAdd:
		user.unnumbered = lender
	default:
		user.unnumbered = nil
	}
	c.reply(reply)
}

func (v *vpp) unnumberedDump(c *call, m *ip.IPUnnumberedDump) {
	for _, i := range v.interfaces {
		if i != nil && i.unnumbered != nil && (m.SwIfIndex == everyIndex || uint32(m.SwIfIndex) == i.index) {
			c.reply(&ip.IPUnnumberedDetails{
				SwIfIndex: interface_types.InterfaceIndex(i.index), IPSwIfIndex: interface_types.InterfaceIndex(i.unnumbered.index),
			})
		}
	}
}

// family returns the position of an address family in a pair: 0 for IPv4, 1 for IPv6.
func family(ip6 bool) int {
	if ip6 {
		return 1
	}
	return 0
}

func (v *vpp) tableAddDel(c *call, m *ip.IPTableAddDel) {
	if m.IsAdd {
		v.tables[family(m.Table.IsIP6)][m.Table.TableID] = true
	} else {
		delete(v.tables[family(m.Table.IsIP6)], m.Table.TableID)
	}
	c.reply(&ip.IPTableAddDelReply{})
}

func (v *vpp) setTable(c *call, m *interfaces.SwInterfaceSetTable) {
	reply := &interfaces.SwInterfaceSetTableReply{}
	switch i, of := v.at(m.SwIfIndex), family(m.IsIPv6); {
	case i == nil:
		reply.Retval = retvalInvalidInterface
	case m.VrfID != 0 && !v.tables[of][m.VrfID]:
		reply.Retval = retvalNoSuchFib
	case slices.ContainsFunc(i.addresses, func(a ip_types.AddressWithPrefix) bool { return (a.Address.Af == ip_types.ADDRESS_IP6) == m.IsIPv6 }):
		reply.Retval = retvalAddressFoundForInterface
	default:
		i.tables[of] = m.VrfID
	}
	c.reply(reply)
}

func (v *vpp) getTable(c *call, m *interfaces.SwInterfaceGetTable) {
	reply := &interfaces.SwInterfaceGetTableReply{}
	if i := v.at(m.SwIfIndex); i == nil {
		reply.Retval = retvalInvalidInterface
	} else {
		reply.VrfID = i.tables[family(m.IsIPv6)]
	}
	c.reply(reply)
}

func (v *vpp) enableIP6(c *call, m *ip.SwInterfaceIP6EnableDisable) {
	reply := &ip.SwInterfaceIP6EnableDisableReply{}
	if i := v.at(m.SwIfIndex); i == nil {
		reply.Retval = retvalInvalidInterface
	} else {
		i.ip6 = m.Enable
	}
	c.reply(reply)
}

// linkLocal returns the link-local address of an interface. An interface has this address as soon as IPv6 is
// enabled on the interface. IPv6 is enabled explicitly, or by another IPv6 address.
func (v *vpp) linkLocal(c *call, m *ip.SwInterfaceIP6GetLinkLocalAddress) {
	reply := &ip.SwInterfaceIP6GetLinkLocalAddressReply{}
	isIP6 := func(a ip_types.AddressWithPrefix) bool { return a.Address.Af == ip_types.ADDRESS_IP6 }
	switch i := v.at(m.SwIfIndex); {
	case i == nil:
		reply.Retval = retvalInvalidInterface
	case !i.ip6 && !slices.ContainsFunc(i.addresses, isIP6):
		reply.Retval = retvalIP6NotEnabled
	default: // derived from the MAC address with EUI-64 (RFC 4291)
		m := i.mac
		reply.IP = ip_types.IP6Address{0xfe, 0x80, 0, 0, 0, 0, 0, 0, m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]}
	}
	c.reply(reply)
}
