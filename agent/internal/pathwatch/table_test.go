package pathwatch

import (
	"context"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"

	"longline.dev/agent/internal/intent"
)

func TestSessionNeedsARouteInTableZeroToTheTunnelsHops(t *testing.T) {
	const none = ^uint32(0)
	lookUp := func(paths ...fib_types.FibPath) *ip.IPRouteLookupReply {
		return &ip.IPRouteLookupReply{Route: ip.IPRoute{Paths: paths}}
	}
	via := func(index uint32, last byte) fib_types.FibPath {
		path := fib_types.FibPath{SwIfIndex: index}
		path.Nh.Address.XXX_UnionData[3] = last
		return path
	}
	into := func(table uint32) fib_types.FibPath { return fib_types.FibPath{SwIfIndex: none, TableID: table} }
	dropped := fib_types.FibPath{SwIfIndex: none, Type: fib_types.FIB_API_PATH_TYPE_DROP}
	tunnels := lookUp(via(1, 2), via(3, 4))
	for name, c := range map[string]struct {
		packets, tunnels *ip.IPRouteLookupReply
		want             bool
	}{
		"into the table":               {lookUp(into(10)), tunnels, true},
		"into another one":             {lookUp(into(20)), tunnels, false},
		"by the same hop":              {lookUp(via(1, 2)), tunnels, true},
		"by another hop":               {lookUp(via(1, 9)), tunnels, false},
		"by the same and another":      {lookUp(via(1, 2), via(5, 2)), tunnels, false},
		"nowhere":                      {lookUp(dropped), tunnels, false},
		"nowhere, and the tunnels":     {lookUp(dropped), lookUp(dropped), false},
		"without the tunnels' table":   {lookUp(into(10)), &ip.IPRouteLookupReply{Retval: -3}, false},
		"without a path":               {lookUp(), tunnels, false},
		"into the table that drops it": {lookUp(into(10)), lookUp(dropped), true},
	} {
		if got := sameRoute(c.packets, c.tunnels, 10); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// routed answers lookups with the path of the table, or with a drop if the table has none.
type routed struct {
	Caller
	paths map[uint32]fib_types.FibPath
}

func (r routed) Calls(_ context.Context, requests []api.Message) (replies []api.Message, err error) {
	for _, request := range requests {
		path, led := r.paths[request.(*ip.IPRouteLookup).TableID]
		if !led {
			path = fib_types.FibPath{SwIfIndex: ^uint32(0), Type: fib_types.FIB_API_PATH_TYPE_DROP}
		}
		replies = append(replies, &ip.IPRouteLookupReply{Route: ip.IPRoute{Paths: []fib_types.FibPath{path}}})
	}
	return replies, nil
}

// TestSessionIsKeptWhileTheUnderlayHasNoRoute: an existing session reports the failure, and no session is
// created.
func TestSessionIsKeptWhileTheUnderlayHasNoRoute(t *testing.T) {
	link, other := fib_types.FibPath{SwIfIndex: 1}, fib_types.FibPath{SwIfIndex: 2}
	path := (&router{n: 1}).path(4)
	wanted := Wanted{Paths: []intent.Path{path}, Tables: map[intent.Path]uint32{path: 10}}
	for name, c := range map[string]struct {
		paths     map[uint32]fib_types.FibPath
		connected bool
		misrouted bool
	}{
		"both by one link":            {map[uint32]fib_types.FibPath{0: link, 10: link}, true, false},
		"both gone":                   {nil, true, false},
		"both gone, and no session":   {nil, false, true},
		"table 0 lost the way":        {map[uint32]fib_types.FibPath{10: link}, true, true},
		"table 0 leads another way":   {map[uint32]fib_types.FibPath{0: other, 10: link}, true, true},
		"table 0 alone still has one": {map[uint32]fib_types.FibPath{0: other}, true, true},
	} {
		existing := make(map[intent.Path]Session)
		if c.connected {
			existing[path] = Session{}
		}
		misrouted, err := Misrouted(t.Context(), routed{paths: c.paths}, wanted, existing)
		if err != nil || (misrouted[path] != "") != c.misrouted {
			t.Errorf("%s: %v, %v", name, misrouted, err)
		}
	}
}
