package vppcontract

import (
	"testing"

	"go.fd.io/govpp/binapi/fib_types"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
)

func prefix(s string) ip_types.Prefix {
	p, err := ip_types.ParsePrefix(s)
	if err != nil {
		panic(err)
	}
	return p
}

func addAddress(of index, s string) *interfaces.SwInterfaceAddDelAddress {
	p, err := ip_types.ParseAddressWithPrefix(s)
	if err != nil {
		panic(err)
	}
	return &interfaces.SwInterfaceAddDelAddress{IsAdd: true, SwIfIndex: of, Prefix: p}
}

func (d *device) address(of index, s string) {
	d.Helper()
	do(d, addAddress(of, s), &interfaces.SwInterfaceAddDelAddressReply{})
}

func (d *device) addresses(of index, ip6 bool) []string {
	d.Helper()
	var found []string
	for _, a := range dump[*ip.IPAddressDetails](d, &ip.IPAddressDump{SwIfIndex: of, IsIPv6: ip6}) {
		found = append(found, a.Prefix.String())
	}
	return found
}

func (d *device) pathTo(host string) fib_types.FibPathType {
	d.Helper()
	reply := do(d, &ip.IPRouteLookup{Prefix: prefix(host)}, &ip.IPRouteLookupReply{})
	if len(reply.Route.Paths) == 0 {
		d.Fatalf("the route to %s has no path", host)
	}
	return reply.Route.Paths[0].Type
}

func (d *device) expectPath(host string, want fib_types.FibPathType) {
	d.Helper()
	if got := d.pathTo(host); got != want {
		d.Errorf("the path to %s is %v, want %v", host, got, want)
	}
}

const (
	normal = fib_types.FIB_API_PATH_TYPE_NORMAL
	local  = fib_types.FIB_API_PATH_TYPE_LOCAL
	drop   = fib_types.FIB_API_PATH_TYPE_DROP
)

func TestAddressesAreReadBackByFamily(t *testing.T) {
	both(t, func(d *device) {
		port := d.portUp()
		d.address(port, "10.0.0.0/31")
		d.address(port, "fd00::1/127")
		if got := d.addresses(port, false); len(got) != 1 || got[0] != "10.0.0.0/31" {
			d.Errorf("IPv4 %v", got)
		}
		if got := d.addresses(port, true); len(got) != 1 || got[0] != "fd00::1/127" {
			d.Errorf("IPv6 %v", got)
		}
	})
}

func TestAnAddressIsTakenOnce(t *testing.T) {
	both(t, func(d *device) {
		port := d.portUp()
		d.address(port, "10.0.0.1/24")
		if again := send(d, addAddress(port, "10.0.0.1/24"), &interfaces.SwInterfaceAddDelAddressReply{}); again.Retval == 0 {
			d.Error("it was added twice")
		}
		away := addAddress(port, "10.0.0.9/24")
		away.IsAdd = false
		if gone := send(d, away, &interfaces.SwInterfaceAddDelAddressReply{}); gone.Retval == 0 {
			d.Error("an address that is not there was deleted")
		}
	})
}

func TestALookupWithoutARouteFindsADrop(t *testing.T) {
	both(t, func(d *device) {
		d.expectPath("10.9.9.9/32", drop)
		d.expectPath("fd09::9/128", drop)
	})
}

func TestALookupInAConnectedPrefixFindsARouteWhileThePortIsUp(t *testing.T) {
	both(t, func(d *device) {
		port := d.portUp()
		d.address(port, "10.0.0.1/24")
		d.expectPath("10.0.0.7/32", normal)
		d.expectPath("10.0.0.1/32", local)
		d.setFlags(port, 0)
		d.expectPath("10.0.0.7/32", drop)
	})
}

func TestALookupFollowsARouteAndItsRemoval(t *testing.T) {
	both(t, func(d *device) {
		port := d.portUp()
		d.address(port, "10.0.0.1/24")
		route := &ip.IPRouteAddDel{IsAdd: true, Route: ip.IPRoute{Prefix: prefix("10.255.0.2/32"),
			Paths: []fib_types.FibPath{{SwIfIndex: uint32(port), Weight: 1,
				Nh: fib_types.FibPathNh{Address: address("10.0.0.2").Un}}}}}
		do(d, route, &ip.IPRouteAddDelReply{})
		d.expectPath("10.255.0.2/32", normal)
		route.IsAdd = false
		do(d, route, &ip.IPRouteAddDelReply{})
		d.expectPath("10.255.0.2/32", drop)
	})
}

func TestATunnelDoesNotMakeItsFarEndReachable(t *testing.T) {
	both(t, func(d *device) {
		d.vxlan("10.0.0.1", "10.255.0.2", 5)
		d.expectPath("10.255.0.2/32", drop)
	})
}
