package vppsim

import (
	"net/netip"

	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
)

func routeOperations() []operation {
	return []operation{
		on((*vpp).routeLookup, &ip.IPRouteLookupReply{}),
		on((*vpp).routeAddDel, &ip.IPRouteAddDelReply{}),
	}
}

// entry is what the FIB has for a prefix.
type entry struct {
	prefix netip.Prefix
	path   fib_types.FibPathType
	via    uint32 // sw_if_index
}

// fib is the routing table at one moment, with the answers it has given.
type fib struct {
	entries []entry
	answers map[netip.Addr]entry
}

// fib walks the configured routes and those of the addresses of interfaces that are up.
func (v *vpp) fib() *fib {
	f := &fib{answers: map[netip.Addr]entry{}}
	for _, route := range v.routes {
		path := fib_types.FIB_API_PATH_TYPE_NORMAL
		if route.Drop {
			path = fib_types.FIB_API_PATH_TYPE_DROP
		}
		f.entries = append(f.entries, entry{route.Prefix.Masked(), path, none})
	}
	for _, i := range v.interfaces {
		if i == nil || !i.adminUp {
			continue
		}
		for _, a := range i.addresses {
			address := netipAddr(a.Address)
			f.entries = append(f.entries,
				entry{netip.PrefixFrom(address, int(a.Len)).Masked(), fib_types.FIB_API_PATH_TYPE_NORMAL, i.index},
				entry{netip.PrefixFrom(address, address.BitLen()), fib_types.FIB_API_PATH_TYPE_LOCAL, i.index})
		}
	}
	return f
}

// lookup finds the longest match. The default of either family is a drop entry, so there is
// always an answer.
func (f *fib) lookup(to netip.Addr) entry {
	if known, ok := f.answers[to]; ok {
		return known
	}
	unspecified := netip.IPv4Unspecified()
	if to.Is6() {
		unspecified = netip.IPv6Unspecified()
	}
	best := entry{netip.PrefixFrom(unspecified, 0), fib_types.FIB_API_PATH_TYPE_DROP, none}
	for _, e := range f.entries {
		if e.prefix.Contains(to) && e.prefix.Bits() >= best.prefix.Bits() {
			best = e
		}
	}
	f.answers[to] = best
	return best
}

func (v *vpp) routeLookup(c *call, m *ip.IPRouteLookup) {
	reply := &ip.IPRouteLookupReply{}
	prefix := netip.PrefixFrom(netipAddr(m.Prefix.Address), int(m.Prefix.Len)).Masked()
	switch found := v.fib().lookup(prefix.Addr()); {
	case m.TableID != 0:
		reply.Retval = retvalNoSuchFib
	case !prefix.IsValid():
		reply.Retval = retvalInvalidValue
	case m.Exact != 0 && found.prefix != prefix:
		reply.Retval = retvalNoSuchEntry
	default:
		reply.Route = ip.IPRoute{
			Prefix: ip_types.Prefix{Address: vppAddress(found.prefix.Addr()), Len: uint8(found.prefix.Bits())},
			Paths:  []fib_types.FibPath{{SwIfIndex: found.via, Type: found.path, Weight: 1, Proto: nhProto(prefix)}},
		}
	}
	c.reply(reply)
}

func nhProto(prefix netip.Prefix) fib_types.FibPathNhProto {
	if prefix.Addr().Is6() {
		return fib_types.FIB_API_PATH_NH_PROTO_IP6
	}
	return fib_types.FIB_API_PATH_NH_PROTO_IP4
}

// routeAddDel keeps of a route only whether it drops.
func (v *vpp) routeAddDel(c *call, m *ip.IPRouteAddDel) {
	reply := &ip.IPRouteAddDelReply{}
	prefix := netip.PrefixFrom(netipAddr(m.Route.Prefix.Address), int(m.Route.Prefix.Len)).Masked()
	switch {
	case m.Route.TableID != 0:
		reply.Retval = retvalNoSuchFib
	case !prefix.IsValid():
		reply.Retval = retvalInvalidValue
	default:
		kept := v.routes[:0]
		for _, route := range v.routes {
			if route.Prefix.Masked() != prefix {
				kept = append(kept, route)
			}
		}
		v.routes = kept
		if m.IsAdd {
			drop := len(m.Route.Paths) > 0 && m.Route.Paths[0].Type == fib_types.FIB_API_PATH_TYPE_DROP
			v.routes = append(v.routes, Route{Prefix: prefix, Drop: drop})
		}
	}
	c.reply(reply)
}
