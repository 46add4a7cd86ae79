package vppsim

import (
	"net/netip"
	"slices"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
)

func ipOperations() []operation {
	return []operation{
		on((*vpp).addressAddDel, &interfaces.SwInterfaceAddDelAddressReply{}),
		on((*vpp).addressDump, &ip.IPAddressDetails{}),
	}
}

func (v *vpp) addressAddDel(c *call, m *interfaces.SwInterfaceAddDelAddress) {
	reply := &interfaces.SwInterfaceAddDelAddressReply{}
	i := v.at(m.SwIfIndex)
	switch {
	case i == nil:
		reply.Retval = retvalInvalidInterface
	case m.DelAll:
		i.addresses = nil
	case m.IsAdd && slices.Contains(i.addresses, m.Prefix):
		reply.Retval = retvalDuplicateAddress
	case m.IsAdd:
		i.addresses = append(i.addresses, m.Prefix)
	case !slices.Contains(i.addresses, m.Prefix):
		reply.Retval = retvalAddressNotFound
	default:
		i.addresses = slices.DeleteFunc(i.addresses, func(a ip_types.AddressWithPrefix) bool { return a == m.Prefix })
	}
	c.reply(reply)
}

func (v *vpp) addressDump(c *call, m *ip.IPAddressDump) {
	i := v.at(m.SwIfIndex)
	if i == nil {
		return
	}
	for _, address := range i.addresses {
		if (address.Address.Af == ip_types.ADDRESS_IP6) == m.IsIPv6 {
			c.reply(&ip.IPAddressDetails{SwIfIndex: m.SwIfIndex, Prefix: address})
		}
	}
}

// upWith returns an interface that is up and has the address, in any table. It returns nil if there is no
// such interface.
func (v *vpp) upWith(address netip.Addr) *iface {
	for _, i := range v.interfaces {
		if i != nil && i.adminUp && slices.ContainsFunc(i.addresses, func(a ip_types.AddressWithPrefix) bool { return netipAddr(a.Address) == address }) {
			return i
		}
	}
	return nil
}

// netipAddr converts an address of VPP, which is a union of both families.
func netipAddr(a ip_types.Address) netip.Addr {
	if a.Af == ip_types.ADDRESS_IP6 {
		return netip.AddrFrom16(a.Un.GetIP6())
	}
	return netip.AddrFrom4(a.Un.GetIP4())
}

func vppAddress(a netip.Addr) ip_types.Address {
	return ip_types.NewAddress(a.AsSlice())
}

func addressWithPrefix(p netip.Prefix) ip_types.AddressWithPrefix {
	return ip_types.AddressWithPrefix{Address: vppAddress(p.Addr()), Len: uint8(p.Bits())}
}
