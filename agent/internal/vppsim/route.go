package vppsim

import (
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
)

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
