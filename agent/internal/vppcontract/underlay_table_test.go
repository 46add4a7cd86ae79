package vppcontract

import (
	"testing"

	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/geneve"
	"go.fd.io/govpp/binapi/gre"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/vxlan"
)

// addIPTable creates the table in both families.
func (d *device) addIPTable(id uint32) {
	d.Helper()
	for _, six := range []bool{false, true} {
		do(d, &ip.IPTableAddDel{IsAdd: true, Table: ip.IPTable{TableID: id, IsIP6: six}}, &ip.IPTableAddDelReply{})
	}
}

func (d *device) setIPTable(of index, id uint32) {
	d.Helper()
	for _, six := range []bool{false, true} {
		do(d, &interfaces.SwInterfaceSetTable{SwIfIndex: of, VrfID: id, IsIPv6: six}, &interfaces.SwInterfaceSetTableReply{})
	}
}

func vxlanIn(table uint32, src, dst string, vni uint32) *vxlan.VxlanAddDelTunnelV3 {
	request := vxlanTunnel(src, dst, vni)
	request.EncapVrfID = table
	return request
}

func geneveIn(table uint32, local, remote string, vni uint32) *geneve.GeneveAddDelTunnel2 {
	request := geneveTunnel(local, remote, vni)
	request.EncapVrfID = table
	return request
}

func greIn(table uint32, src, dst string) *gre.GreTunnelAddDel {
	request := greTunnel(src, dst)
	request.Tunnel.OuterTableID = table
	return request
}

// ends are two tunnel addresses of each family.
var ends = map[string][2]string{"IPv4": {"10.0.0.1", "10.0.0.2"}, "IPv6": {"fd00::1", "fd00::2"}}

func TestATunnelIsCreatedInAnExistingTableAndReadBackWithIt(t *testing.T) {
	for name, pair := range ends {
		t.Run(name, func(t *testing.T) {
			both(t, func(d *device) {
				local, remote := pair[0], pair[1]
				refused(d, vxlanIn(10, local, remote, 5), &vxlan.VxlanAddDelTunnelV3Reply{}, -3)
				refused(d, geneveIn(10, local, remote, 5), &geneve.GeneveAddDelTunnel2Reply{}, -3)
				refused(d, greIn(10, local, remote), &gre.GreTunnelAddDelReply{}, -3)
				d.addIPTable(10)
				do(d, vxlanIn(10, local, remote, 5), &vxlan.VxlanAddDelTunnelV3Reply{})
				do(d, geneveIn(10, local, remote, 5), &geneve.GeneveAddDelTunnel2Reply{})
				do(d, greIn(10, local, remote), &gre.GreTunnelAddDelReply{})
				if got := dump[*vxlan.VxlanTunnelV2Details](d, &vxlan.VxlanTunnelV2Dump{SwIfIndex: anyIndex}); len(got) != 1 || got[0].EncapVrfID != 10 {
					d.Errorf("VXLAN: %+v", got)
				}
				if got := dump[*geneve.GeneveTunnelDetails](d, &geneve.GeneveTunnelDump{SwIfIndex: anyIndex}); len(got) != 1 || name == "IPv4" && got[0].EncapVrfID != 10 {
					d.Errorf("GENEVE: %+v", got)
				}
				if got := dump[*gre.GreTunnelDetails](d, &gre.GreTunnelDump{SwIfIndex: anyIndex}); len(got) != 1 || got[0].Tunnel.OuterTableID != 10 {
					d.Errorf("GRE: %+v", got)
				}
				if d.hasGREKeys() {
					if got := dump[*gre.GreTunnelDetailsV2](d, &gre.GreTunnelDumpV2{SwIfIndex: anyIndex}); len(got) != 1 || got[0].Tunnel.OuterTableID != 10 {
						d.Errorf("GRE with keys: %+v", got)
					}
				}
			})
		})
	}
}

// TestTheTableOfAGENEVETunnelOverIPv6IsReadFromTheIPv4Tables: geneve_tunnel_dump returns another number
// than the tunnel was created with: 0 or arbitrary memory. It is right only if both families created their
// tables in the same order.
func TestTheTableOfAGENEVETunnelOverIPv6IsReadFromTheIPv4Tables(t *testing.T) {
	both(t, func(d *device) {
		for _, table := range []ip.IPTable{{TableID: 30}, {TableID: 10}, {TableID: 10, IsIP6: true}} {
			do(d, &ip.IPTableAddDel{IsAdd: true, Table: table}, &ip.IPTableAddDelReply{})
		}
		do(d, geneveIn(10, "fd00::1", "fd00::2", 5), &geneve.GeneveAddDelTunnel2Reply{})
		do(d, geneveIn(0, "fd00::1", "fd00::2", 6), &geneve.GeneveAddDelTunnel2Reply{})
		for _, got := range dump[*geneve.GeneveTunnelDetails](d, &geneve.GeneveTunnelDump{SwIfIndex: anyIndex}) {
			if got.Vni == 5 && got.EncapVrfID == 10 || got.Vni == 6 && got.EncapVrfID != 0 {
				d.Errorf("%+v", got)
			}
		}
	})
}

func (d *device) hasGREKeys() bool {
	request := &gre.GreTunnelDumpV2{}
	_, err := d.client.GetMsgID(request.GetMessageName(), request.GetCrcString())
	return err == nil
}

// TestTheTableIsPartOfATunnelsKeyExceptForGENEVE: GENEVE identifies a tunnel by remote address and VNI in
// any table.
func TestTheTableIsPartOfATunnelsKeyExceptForGENEVE(t *testing.T) {
	for name, pair := range ends {
		t.Run(name, func(t *testing.T) {
			both(t, func(d *device) {
				local, remote := pair[0], pair[1]
				d.addIPTable(10)
				for _, table := range []uint32{0, 10} {
					do(d, vxlanIn(table, local, remote, 5), &vxlan.VxlanAddDelTunnelV3Reply{})
					do(d, greIn(table, local, remote), &gre.GreTunnelAddDelReply{})
				}
				do(d, geneveIn(10, local, remote, 5), &geneve.GeneveAddDelTunnel2Reply{})
				refused(d, geneveIn(0, local, remote, 5), &geneve.GeneveAddDelTunnel2Reply{}, tunnelExists)

				deleted := vxlanIn(10, local, remote, 5)
				deleted.IsAdd = false
				do(d, deleted, &vxlan.VxlanAddDelTunnelV3Reply{})
				refused(d, deleted, &vxlan.VxlanAddDelTunnelV3Reply{}, noSuchEntry)
				gone := greIn(10, local, remote)
				gone.IsAdd = false
				do(d, gone, &gre.GreTunnelAddDelReply{})
				refused(d, gone, &gre.GreTunnelAddDelReply{}, noSuchEntry)
				other := geneveIn(0, local, remote, 5)
				other.IsAdd = false
				do(d, other, &geneve.GeneveAddDelTunnel2Reply{}) // in any table
			})
		})
	}
}

func TestAnInterfaceWithAddressesStaysInItsTable(t *testing.T) {
	both(t, func(d *device) {
		d.addIPTable(10)
		port := d.portUp()
		d.address(port, "10.0.0.1/24")
		d.address(port, "fd00::1/64")
		for _, six := range []bool{false, true} {
			refused(d, &interfaces.SwInterfaceSetTable{SwIfIndex: port, VrfID: 10, IsIPv6: six}, &interfaces.SwInterfaceSetTableReply{}, -114)
		}
		if four, six := d.table(port, false), d.table(port, true); four != 0 || six != 0 {
			d.Errorf("tables %d and %d", four, six)
		}
	})
}

func (d *device) pathIn(table uint32, host string) (fib_types.FibPath, ip.IPRoute) {
	d.Helper()
	reply := do(d, &ip.IPRouteLookup{TableID: table, Prefix: prefix(host)}, &ip.IPRouteLookupReply{})
	if len(reply.Route.Paths) == 0 {
		d.Fatalf("the route to %s in table %d has no path", host, table)
	}
	return reply.Route.Paths[0], reply.Route
}

func TestALookupUsesTheRequestedTable(t *testing.T) {
	both(t, func(d *device) {
		refused(d, &ip.IPRouteLookup{TableID: 10, Prefix: prefix("10.0.0.7/32")}, &ip.IPRouteLookupReply{}, -3)
		d.addIPTable(10)
		port := d.portUp()
		d.setIPTable(port, 10)
		d.address(port, "10.0.0.1/24")
		d.address(port, "fd00::1/64")
		for host, want := range map[string]fib_types.FibPathType{"10.0.0.1/32": local, "10.0.0.7/32": normal, "fd00::1/128": local, "10.9.9.9/32": drop} {
			if path, _ := d.pathIn(10, host); path.Type != want {
				d.Errorf("in table 10, the path to %s is %v, want %v", host, path.Type, want)
			}
			d.expectPath(host, drop)
		}
	})
}

// TestARouteMayLeadIntoAnotherTable: its path then names that table and no interface.
func TestARouteMayLeadIntoAnotherTable(t *testing.T) {
	both(t, func(d *device) {
		d.addIPTable(10)
		for host, proto := range map[string]fib_types.FibPathNhProto{
			"10.255.0.2/32": fib_types.FIB_API_PATH_NH_PROTO_IP4, "fd00:255::2/128": fib_types.FIB_API_PATH_NH_PROTO_IP6,
		} {
			route := &ip.IPRouteAddDel{IsAdd: true, Route: ip.IPRoute{Prefix: prefix(host), Paths: []fib_types.FibPath{{
				SwIfIndex: none, TableID: 10, Weight: 1, Proto: proto,
			}}}}
			do(d, route, &ip.IPRouteAddDelReply{})
			if path, _ := d.pathIn(0, host); path.SwIfIndex != none || path.TableID != 10 || path.Type != normal || path.Nh.Address != (fib_types.FibPathNh{}).Address {
				d.Errorf("%s: %+v", host, path)
			}
		}
	})
}

func TestADefaultRouteIsRecognizedByItsPrefixLength(t *testing.T) {
	both(t, func(d *device) {
		port := d.portUp()
		d.address(port, "10.0.0.1/24")
		do(d, &ip.IPRouteAddDel{IsAdd: true, Route: ip.IPRoute{Prefix: prefix("0.0.0.0/0"), Paths: []fib_types.FibPath{{
			SwIfIndex: uint32(port), Weight: 1, Nh: fib_types.FibPathNh{Address: address("10.0.0.2").Un},
		}}}}, &ip.IPRouteAddDelReply{})
		if path, route := d.pathIn(0, "10.255.0.2/32"); route.Prefix.Len != 0 || path.Type != normal {
			d.Errorf("%+v", route)
		}
	})
}
