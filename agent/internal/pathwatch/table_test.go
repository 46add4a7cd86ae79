package pathwatch

import (
	"testing"

	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
)

func TestASessionTakesTheTunnelsWayOnlyWhereTableZeroLeadsIt(t *testing.T) {
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
		if got := sameWay(c.packets, c.tunnels, 10); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
