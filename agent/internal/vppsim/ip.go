package vppsim

import (
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/fib_types"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
)

func (v *vpp) addressAddDel(i *iface, m *interfaces.SwInterfaceAddDelAddress) int32 {
	at := slices.Index(i.addresses, m.Prefix)
	switch {
	case m.DelAll:
		i.addresses = nil
	case m.IsAdd && at >= 0:
		return retvalDuplicateAddress
	case m.IsAdd:
		i.addresses = append(i.addresses, m.Prefix)
	case at < 0:
		return retvalAddressNotFound
	default:
		i.addresses = slices.Delete(i.addresses, at, at+1)
	}
	return 0
}

func (v *vpp) addressDump(m *ip.IPAddressDump, send func(*ip.IPAddressDetails)) {
	if i := v.at(m.SwIfIndex); i != nil {
		for _, address := range i.addresses {
			if isIP6(address) == m.IsIPv6 {
				send(&ip.IPAddressDetails{SwIfIndex: m.SwIfIndex, Prefix: address})
			}
		}
	}
}

func isIP6(a ip_types.AddressWithPrefix) bool { return a.Address.Af == ip_types.ADDRESS_IP6 }

// upWith returns an interface that is up and has the address, in any table. It returns nil if there is no
// such interface.
func (v *vpp) upWith(address netip.Addr) *iface {
	for _, i := range v.interfaces.all() {
		if i.adminUp && slices.ContainsFunc(i.addresses, func(a ip_types.AddressWithPrefix) bool { return netipAddr(a.Address) == address }) {
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

func (v *vpp) setUnnumbered(m *interfaces.SwInterfaceSetUnnumbered) int32 {
	lender, user := v.at(m.SwIfIndex), v.at(m.UnnumberedSwIfIndex)
	if lender == nil || user == nil {
		return retvalInvalidInterface
	}
	if user.unnumbered = nil; m.IsAdd {
		user.unnumbered = lender
	}
	return 0
}

func (v *vpp) unnumberedDump(m *ip.IPUnnumberedDump, send func(*ip.IPUnnumberedDetails)) {
	for index, i := range v.interfaces.all() {
		if i.unnumbered != nil && (m.SwIfIndex == everyIndex || uint32(m.SwIfIndex) == index) {
			send(&ip.IPUnnumberedDetails{
				SwIfIndex: interface_types.InterfaceIndex(index), IPSwIfIndex: interface_types.InterfaceIndex(i.unnumbered.index),
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

func (v *vpp) tableAddDel(m *ip.IPTableAddDel) int32 {
	v.tables[family(m.Table.IsIP6)][m.Table.TableID] = m.IsAdd
	return 0
}

func (v *vpp) setTable(i *iface, m *interfaces.SwInterfaceSetTable) int32 {
	switch {
	case !v.knows(m.VrfID, m.IsIPv6):
		return retvalNoSuchFib
	case slices.ContainsFunc(i.addresses, func(a ip_types.AddressWithPrefix) bool { return isIP6(a) == m.IsIPv6 }):
		return retvalAddressFoundForInterface
	}
	i.tables[family(m.IsIPv6)] = m.VrfID
	return 0
}

func (v *vpp) getTable(m *interfaces.SwInterfaceGetTable, reply *interfaces.SwInterfaceGetTableReply) {
	if i := v.at(m.SwIfIndex); i == nil {
		reply.Retval = retvalInvalidInterface
	} else {
		reply.VrfID = i.tables[family(m.IsIPv6)]
	}
}

func (v *vpp) enableIP6(i *iface, m *ip.SwInterfaceIP6EnableDisable) int32 {
	i.ip6 = m.Enable
	return 0
}

// linkLocal returns the link-local address of an interface. An interface has this address as soon as IPv6 is
// enabled on the interface. IPv6 is enabled explicitly, or by another IPv6 address.
func (v *vpp) linkLocal(m *ip.SwInterfaceIP6GetLinkLocalAddress, reply *ip.SwInterfaceIP6GetLinkLocalAddressReply) {
	switch i := v.at(m.SwIfIndex); {
	case i == nil:
		reply.Retval = retvalInvalidInterface
	case !i.ip6 && !slices.ContainsFunc(i.addresses, isIP6):
		reply.Retval = retvalIP6NotEnabled
	default: // derived from the MAC address with EUI-64 (RFC 4291)
		m := i.mac
		reply.IP = ip_types.IP6Address{0xfe, 0x80, 0, 0, 0, 0, 0, 0, m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]}
	}
}

// entry is the entry for a prefix in a FIB table.
type entry struct {
	table    uint32
	prefix   netip.Prefix
	path     fib_types.FibPathType
	via      uint32 // sw_if_index
	lookupIn uint32 // 0, or the table in which the lookup continues
}

// fib is a copy of all routing tables at one time, with a cache of lookups.
type fib struct {
	entries []entry
	answers map[destination]entry
}

type destination struct {
	table uint32
	to    netip.Addr
}

// fib returns the configured routes, and the routes of the addresses whose interfaces are up.
func (v *vpp) fib() *fib {
	f := &fib{answers: map[destination]entry{}}
	for _, route := range v.routes {
		path := fib_types.FIB_API_PATH_TYPE_NORMAL
		if route.Drop {
			path = fib_types.FIB_API_PATH_TYPE_DROP
		}
		f.entries = append(f.entries, entry{route.Table, route.Prefix.Masked(), path, none, route.lookupIn})
	}
	for _, i := range v.interfaces.all() {
		if !i.adminUp {
			continue
		}
		for _, a := range i.addresses {
			address := netipAddr(a.Address)
			table := i.tables[family(address.Is6())]
			f.entries = append(f.entries,
				entry{table, netip.PrefixFrom(address, int(a.Len)).Masked(), fib_types.FIB_API_PATH_TYPE_NORMAL, i.index, 0},
				entry{table, netip.PrefixFrom(address, address.BitLen()), fib_types.FIB_API_PATH_TYPE_LOCAL, i.index, 0})
		}
	}
	return f
}

// lookup returns the entry with the longest matching prefix in a table. There is always a match, because
// each family has a default entry that drops.
func (f *fib) lookup(table uint32, to netip.Addr) entry {
	if known, ok := f.answers[destination{table, to}]; ok {
		return known
	}
	unspecified := netip.IPv4Unspecified()
	if to.Is6() {
		unspecified = netip.IPv6Unspecified()
	}
	best := entry{table, netip.PrefixFrom(unspecified, 0), fib_types.FIB_API_PATH_TYPE_DROP, none, 0}
	for _, e := range f.entries {
		if e.table == table && e.prefix.Contains(to) && e.prefix.Bits() >= best.prefix.Bits() {
			best = e
		}
	}
	f.answers[destination{table, to}] = best
	return best
}

// follow does the same as lookup, but continues in another table if the entry refers to one.
func (f *fib) follow(table uint32, to netip.Addr) entry {
	found := f.lookup(table, to)
	if found.lookupIn != 0 && found.lookupIn != table {
		return f.lookup(found.lookupIn, to)
	}
	return found
}

// knows reports whether a FIB table with this number exists for the family.
func (v *vpp) knows(table uint32, is6 bool) bool { return table == 0 || v.tables[family(is6)][table] }

func (v *vpp) routeLookup(m *ip.IPRouteLookup, reply *ip.IPRouteLookupReply) {
	prefix := netip.PrefixFrom(netipAddr(m.Prefix.Address), int(m.Prefix.Len)).Masked()
	switch found := v.fib().lookup(m.TableID, prefix.Addr()); {
	case !v.knows(m.TableID, prefix.Addr().Is6()):
		reply.Retval = retvalNoSuchFib
	case !prefix.IsValid():
		reply.Retval = retvalInvalidValue
	case m.Exact != 0 && found.prefix != prefix:
		reply.Retval = retvalNoSuchEntry
	default:
		reply.Route = ip.IPRoute{
			Prefix: ip_types.Prefix{Address: vppAddress(found.prefix.Addr()), Len: uint8(found.prefix.Bits())},
			Paths: []fib_types.FibPath{{
				SwIfIndex: found.via, TableID: found.lookupIn, Type: found.path, Weight: 1,
				Proto: fib_types.FibPathNhProto(family(prefix.Addr().Is6())), // FIB_API_PATH_NH_PROTO_IP4 or _IP6
			}},
		}
	}
}

// routeAddDel adds or deletes a route. Of a route, it stores only whether the route drops packets, and the
// table that the route refers to.
func (v *vpp) routeAddDel(m *ip.IPRouteAddDel) int32 {
	prefix := netip.PrefixFrom(netipAddr(m.Route.Prefix.Address), int(m.Route.Prefix.Len)).Masked()
	switch {
	case !v.knows(m.Route.TableID, prefix.Addr().Is6()):
		return retvalNoSuchFib
	case !prefix.IsValid():
		return retvalInvalidValue
	}
	v.routes = slices.DeleteFunc(v.routes, func(r Route) bool { return r.Table == m.Route.TableID && r.Prefix.Masked() == prefix })
	if m.IsAdd {
		route := Route{Prefix: prefix, Table: m.Route.TableID}
		if len(m.Route.Paths) > 0 {
			first := m.Route.Paths[0]
			route.Drop = first.Type == fib_types.FIB_API_PATH_TYPE_DROP
			if first.SwIfIndex == none {
				route.lookupIn = first.TableID
			}
		}
		v.routes = append(v.routes, route)
	}
	return 0
}
