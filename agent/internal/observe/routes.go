package observe

import (
	"context"
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"

	"longline.dev/agent/internal/vpp"
)

// Caller sends pipelined requests.
type Caller interface {
	Calls(ctx context.Context, reqs []api.Message) ([]api.Message, error)
}

// Reachable looks up the best route to each address in table 0. A drop is an answer too: an address is
// reachable when a path leads somewhere.
func Reachable(ctx context.Context, session Caller, addresses []netip.Addr) (map[netip.Addr]bool, error) {
	var lookups []api.Message
	for _, a := range addresses {
		lookups = append(lookups, &ip.IPRouteLookup{Prefix: ip_types.Prefix{Address: vpp.IPAddress(a), Len: uint8(a.BitLen())}})
	}
	replies, err := session.Calls(ctx, lookups)
	if err != nil {
		return nil, err
	}
	reachable := make(map[netip.Addr]bool, len(addresses))
	for i, reply := range replies {
		reachable[addresses[i]] = leadsSomewhere(reply.(*ip.IPRouteLookupReply))
	}
	return reachable, nil
}

func leadsSomewhere(reply *ip.IPRouteLookupReply) bool {
	if reply.Retval != 0 {
		return false
	}
	for _, path := range reply.Route.Paths {
		switch path.Type {
		case fib_types.FIB_API_PATH_TYPE_DROP, fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH, fib_types.FIB_API_PATH_TYPE_ICMP_PROHIBIT:
		default:
			return true
		}
	}
	return false
}
