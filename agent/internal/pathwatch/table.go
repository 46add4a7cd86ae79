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

// VPP routes the packets of a multihop BFD session by table 0, regardless of the table of its addresses. It
// accepts received packets in every table (vnet/bfd/bfd_udp.c; observed with 25.10). So the agent monitors a
// path in another table only if a route of table 0 leads to the same next hops.
//
// In other cases the agent creates no session, because the session would show nothing about the tunnels, or
// would show the state of another network with the same addresses. If neither table has a route, the underlay
// may just have failed. In this case the agent keeps an existing session, because the session reports the
// failure.

// Misrouted returns the wanted paths whose BFD packets would take another route than the tunnels, each with
// the reason. existing has the sessions in VPP.
func Misrouted(ctx context.Context, session Caller, wanted Wanted, existing map[intent.Path]Session) (Refused, error) {
	misrouted := make(Refused)
	var paths []intent.Path
	var lookups []api.Message
	for _, path := range wanted.Paths {
		if table := wanted.Tables[path]; table != 0 {
			paths = append(paths, path)
			lookups = append(lookups, lookup(0, path.Remote), lookup(table, path.Remote))
		}
	}
	if len(paths) == 0 {
		return misrouted, nil
	}
	replies, err := session.Calls(ctx, lookups)
	if err != nil {
		return nil, fmt.Errorf("look up where BFD packets go: %w", err)
	}
	for n, path := range paths {
		table, packets, tunnels := wanted.Tables[path], replies[2*n].(*ip.IPRouteLookupReply), replies[2*n+1].(*ip.IPRouteLookupReply)
		if _, exists := existing[path]; exists && leadsNowhere(packets) && leadsNowhere(tunnels) {
			continue
		}
		if !sameRoute(packets, tunnels, table) {
			family := map[bool]string{true: "ip4", false: "ip6"}[path.Remote.Is4()]
			misrouted[path] = fmt.Sprintf("VPP sends BFD packets by table 0, where no route to %s leads into table %d: "+
				"ip route add %s/%d via %s-lookup-in-table %d", path.Remote, table, path.Remote, path.Remote.BitLen(), family, table)
		}
	}
	return misrouted, nil
}

func lookup(table uint32, to netip.Addr) api.Message {
	return &ip.IPRouteLookup{TableID: table, Prefix: ip_types.Prefix{Address: vpp.IPAddress(to), Len: uint8(to.BitLen())}}
}

// sameRoute reports whether table 0 (BFD packets) and the given table (tunnel packets) lead to the same next
// hops.
func sameRoute(packets, tunnels *ip.IPRouteLookupReply, table uint32) bool {
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

// leadsNowhere reports whether VPP drops packets to this destination.
func leadsNowhere(found *ip.IPRouteLookupReply) bool {
	return found.Retval == 0 && !slices.ContainsFunc(found.Route.Paths, func(path fib_types.FibPath) bool {
		switch path.Type {
		case fib_types.FIB_API_PATH_TYPE_DROP, fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH, fib_types.FIB_API_PATH_TYPE_ICMP_PROHIBIT:
			return false
		}
		return true
	})
}

// hop is the destination of a path of a route.
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

func (h hop) leads() bool { return h.kind == fib_types.FIB_API_PATH_TYPE_NORMAL && h.via != ^uint32(0) }
