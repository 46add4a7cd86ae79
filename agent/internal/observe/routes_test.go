package observe

import (
	"context"
	"net/netip"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
)

// tables answers every lookup with the route of the table, and refuses tables that do not exist.
type tables map[uint32]ip.IPRoute

func (t tables) Calls(_ context.Context, requests []api.Message) (replies []api.Message, err error) {
	for _, request := range requests {
		reply := &ip.IPRouteLookupReply{Retval: -3}
		if route, exists := t[request.(*ip.IPRouteLookup).TableID]; exists {
			*reply = ip.IPRouteLookupReply{Route: route}
		}
		replies = append(replies, reply)
	}
	return replies, nil
}

func route(bits uint8, kind fib_types.FibPathType) ip.IPRoute {
	return ip.IPRoute{Prefix: ip_types.Prefix{Len: bits}, Paths: []fib_types.FibPath{{Type: kind}}}
}

func TestReachableUsesTheRouteOfTheTable(t *testing.T) {
	vpp := tables{
		0:  route(32, fib_types.FIB_API_PATH_TYPE_DROP),
		10: route(32, fib_types.FIB_API_PATH_TYPE_NORMAL),
		20: route(0, fib_types.FIB_API_PATH_TYPE_NORMAL), // a default route
	}
	for table, want := range map[uint32]map[bool]bool{
		0: {true: false, false: false}, 10: {true: true, false: true}, 20: {true: true, false: false}, 30: {true: false, false: false},
	} {
		for defaultRoutes, reachable := range want {
			to := Destination{table, netip.MustParseAddr("10.255.0.2")}
			got, err := Reachable(t.Context(), vpp, []Destination{to}, defaultRoutes)
			if err != nil || got[to] != reachable {
				t.Errorf("table %d, default routes %v: %v, %v", table, defaultRoutes, got, err)
			}
		}
	}
}
