package pathwatch

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/vpp"
)

// VPP looks up in table 0 where the packets of a multihop session go, whatever the table of its addresses, and takes in what
// comes in any table (vnet/bfd/bfd_udp.c; seen with 25.10). So a path in another table is watched where a route of table 0
// leads the same way. Where it does not, a session would say nothing of the tunnels, or something of another network with the
// same addresses: then there is none. Where neither leads anywhere, the underlay may just have failed, and a session that is there
// stays, for it tells so.

// Astray are the wanted paths that packets of a session would not take, and why; there are the sessions that VPP has.
func Astray(ctx context.Context, session Caller, wanted Wanted, there map[intent.Path]Session) (Refused, error) {
	astray := make(Refused)
	var paths []intent.Path
	var lookups []api.Message
	for _, path := range wanted.Paths {
		if table := wanted.Tables[path]; table != 0 {
			paths = append(paths, path)
			lookups = append(lookups, lookup(0, path.Remote), lookup(table, path.Remote))
		}
	}
	if len(paths) == 0 {
		return astray, nil
	}
	replies, err := session.Calls(ctx, lookups)
	if err != nil {
		return nil, fmt.Errorf("look up where BFD packets go: %w", err)
	}
	for n, path := range paths {
		table, packets, tunnels := wanted.Tables[path], replies[2*n].(*ip.IPRouteLookupReply), replies[2*n+1].(*ip.IPRouteLookupReply)
		if _, stands := there[path]; stands && leadsNowhere(packets) && leadsNowhere(tunnels) {
			continue
		}
		if !sameWay(packets, tunnels, table) {
			family := map[bool]string{true: "ip4", false: "ip6"}[path.Remote.Is4()]
			astray[path] = fmt.Sprintf("VPP sends BFD packets by table 0, where no route to %s leads into table %d: "+
				"ip route add %s/%d via %s-lookup-in-table %d", path.Remote, table, path.Remote, path.Remote.BitLen(), family, table)
		}
	}
	return astray, nil
}

func lookup(table uint32, to netip.Addr) api.Message {
	return &ip.IPRouteLookup{TableID: table, Prefix: ip_types.Prefix{Address: vpp.IPAddress(to), Len: uint8(to.BitLen())}}
}

// sameWay reports whether packets, looked up in table 0, go where tunnels go, looked up in theirs.
func sameWay(packets, tunnels *ip.IPRouteLookupReply, table uint32) bool {
	if packets.Retval != 0 || tunnels.Retval != 0 || len(packets.Route.Paths) == 0 {
		return false
	}
	hops := make([]hop, 0, len(tunnels.Route.Paths))
	for _, path := range tunnels.Route.Paths {
		hops = append(hops, hopOf(path))
	}
	return !slices.ContainsFunc(packets.Route.Paths, func(path fib_types.FibPath) bool {
		at := hopOf(path)
		return at != hop{kind: fib_types.FIB_API_PATH_TYPE_NORMAL, via: ^uint32(0), table: table} && !(at.leads() && slices.Contains(hops, at))
	})
}

// leadsNowhere reports whether VPP drops what it looks up so.
func leadsNowhere(found *ip.IPRouteLookupReply) bool {
	return found.Retval == 0 && !slices.ContainsFunc(found.Route.Paths, func(path fib_types.FibPath) bool {
		switch path.Type {
		case fib_types.FIB_API_PATH_TYPE_DROP, fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH, fib_types.FIB_API_PATH_TYPE_ICMP_PROHIBIT:
			return false
		}
		return true
	})
}

// hop is where a path of a route leads.
type hop struct {
	kind       fib_types.FibPathType
	via, table uint32
	next       [16]byte
}

func hopOf(path fib_types.FibPath) hop {
	at := hop{kind: path.Type, via: path.SwIfIndex, next: path.Nh.Address.XXX_UnionData}
	if at.via == ^uint32(0) {
		at.table = path.TableID
	}
	return at
}

// leads is false for what leads to no interface.
func (h hop) leads() bool { return h.kind == fib_types.FIB_API_PATH_TYPE_NORMAL && h.via != ^uint32(0) }
