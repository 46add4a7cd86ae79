package observe

import (
	"cmp"
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

// Destination is an address, and the table in which to look it up.
type Destination struct {
	Table   uint32
	Address netip.Addr
}

// Compare defines the order of destinations.
func (d Destination) Compare(o Destination) int {
	return cmp.Or(cmp.Compare(d.Table, o.Table), d.Address.Compare(o.Address))
}

// Reachable looks up the best route to each destination. An address is reachable if at least one path of the
// route does not drop packets. A default route counts only if defaultRoutes is true. An address in a table
// that does not exist is not reachable.
func Reachable(ctx context.Context, session Caller, destinations []Destination, defaultRoutes bool) (map[Destination]bool, error) {
	var lookups []api.Message
	for _, to := range destinations {
		lookups = append(lookups, &ip.IPRouteLookup{
			TableID: to.Table, Prefix: ip_types.Prefix{Address: vpp.IPAddress(to.Address), Len: uint8(to.Address.BitLen())},
		})
	}
	replies, err := session.Calls(ctx, lookups)
	if err != nil {
		return nil, err
	}
	reachable := make(map[Destination]bool, len(destinations))
	for n, to := range destinations {
		reply := replies[n].(*ip.IPRouteLookupReply)
		reachable[to] = leadsSomewhere(reply) && (defaultRoutes || reply.Route.Prefix.Len > 0)
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
