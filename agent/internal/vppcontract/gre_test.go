package vppcontract

import (
	"context"
	"maps"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/gre"
	"go.fd.io/govpp/binapi/memclnt"
)

const interfaceExists = -79

func greTunnel(src, dst string) *gre.GreTunnelAddDel {
	return &gre.GreTunnelAddDel{IsAdd: true, Tunnel: gre.GreTunnel{Type: gre.GRE_API_TUNNEL_TYPE_TEB,
		Instance: none, Src: address(src), Dst: address(dst)}}
}

func greDelete(src, dst string) *gre.GreTunnelAddDel {
	request := greTunnel(src, dst)
	request.IsAdd = false
	return request
}

func (d *device) gre(src, dst string) index {
	d.Helper()
	return do(d, greTunnel(src, dst), &gre.GreTunnelAddDelReply{}).SwIfIndex
}

func TestAGRETunnelIsDownWithMTU9000(t *testing.T) {
	both(t, func(d *device) {
		i := d.at(d.gre("10.0.0.1", "10.0.0.2"))
		if i.InterfaceName != "gre0" || i.InterfaceDevType != "GRE tunnel device" {
			d.Errorf("name %q, device %q", i.InterfaceName, i.InterfaceDevType)
		}
		if i.Flags != 0 || i.Mtu[0] != 9000 || i.LinkMtu != 8998 {
			d.Errorf("flags %v, mtu %v, of its link %d", i.Flags, i.Mtu, i.LinkMtu)
		}
		d.setFlags(i.SwIfIndex, up)
		if flags := d.at(i.SwIfIndex).Flags; flags != up|linkUp {
			d.Errorf("after admin up: flags %v", flags)
		}
	})
}

func TestAGRETunnelIsReadBackAsItWasMade(t *testing.T) {
	for name, c := range map[string]struct{ src, dst string }{
		"IPv4": {"10.0.0.1", "10.0.0.2"}, "IPv6": {"fd00::1", "fd00::2"},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(d *device) {
				made := d.gre(c.src, c.dst)
				all := dump[*gre.GreTunnelDetails](d, &gre.GreTunnelDump{SwIfIndex: anyIndex})
				if len(all) != 1 {
					d.Fatalf("%d tunnels", len(all))
				}
				got := all[0].Tunnel
				if got.SwIfIndex != made || got.Src != address(c.src) || got.Dst != address(c.dst) ||
					got.Type != gre.GRE_API_TUNNEL_TYPE_TEB || got.Instance != 0 {
					d.Errorf("%+v", got)
				}
			})
		})
	}
}

func TestGREIsKeyedByTheAddressPair(t *testing.T) {
	both(t, func(d *device) {
		d.gre("10.0.0.1", "10.0.0.2")
		refused(d, greTunnel("10.0.0.1", "10.0.0.2"), &gre.GreTunnelAddDelReply{}, interfaceExists)
		d.gre("10.0.0.3", "10.0.0.2")
		d.gre("10.0.0.1", "10.0.0.4")
		d.gre("fd00::1", "fd00::2")
		refused(d, greTunnel("fd00::1", "fd00::2"), &gre.GreTunnelAddDelReply{}, interfaceExists)
	})
}

func keyed(src, dst string, key uint32) *gre.GreTunnelAddDelV2 {
	return &gre.GreTunnelAddDelV2{IsAdd: true, Tunnel: gre.GreTunnelV2{Type: gre.GRE_API_TUNNEL_TYPE_TEB,
		Instance: none, Src: address(src), Dst: address(dst), Key: key}}
}

func keyedDelete(src, dst string, key uint32) *gre.GreTunnelAddDelV2 {
	request := keyed(src, dst, key)
	request.IsAdd = false
	return request
}

// greKeys returns the keys of the tunnels that VPP dumps, by interface.
func (d *device) greKeys() map[index]uint32 {
	d.Helper()
	keys := make(map[index]uint32)
	for _, each := range dump[*gre.GreTunnelDetailsV2](d, &gre.GreTunnelDumpV2{SwIfIndex: anyIndex}) {
		keys[each.Tunnel.SwIfIndex] = each.Tunnel.Key
	}
	return keys
}

func TestAGREKeySeparatesTunnelsOfOneAddressPair(t *testing.T) {
	for name, c := range map[string]struct{ src, dst string }{
		"IPv4": {"10.0.0.1", "10.0.0.2"}, "IPv6": {"fd00::1", "fd00::2"},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(d *device) {
				d.needs(&gre.GreTunnelAddDelV2{})
				want := map[index]uint32{d.gre(c.src, c.dst): 0}
				for _, key := range []uint32{7, 1 << 24, 1<<32 - 1} {
					want[do(d, keyed(c.src, c.dst, key), &gre.GreTunnelAddDelV2Reply{}).SwIfIndex] = key
				}
				refused(d, keyed(c.src, c.dst, 7), &gre.GreTunnelAddDelV2Reply{}, interfaceExists)
				refused(d, keyed(c.src, c.dst, 0), &gre.GreTunnelAddDelV2Reply{}, interfaceExists)
				if got := d.greKeys(); !maps.Equal(got, want) {
					d.Errorf("reads %v, want %v", got, want)
				}
			})
		})
	}
}

func TestAGRETunnelIsDeletedByItsKey(t *testing.T) {
	both(t, func(d *device) {
		d.needs(&gre.GreTunnelAddDelV2{})
		plain := d.gre("10.0.0.1", "10.0.0.2")
		made := do(d, keyed("10.0.0.1", "10.0.0.2", 7), &gre.GreTunnelAddDelV2Reply{}).SwIfIndex
		refused(d, keyedDelete("10.0.0.1", "10.0.0.2", 8), &gre.GreTunnelAddDelV2Reply{}, noSuchEntry)
		do(d, greDelete("10.0.0.1", "10.0.0.2"), &gre.GreTunnelAddDelReply{})
		if got := d.greKeys(); !maps.Equal(got, map[index]uint32{made: 7}) {
			d.Errorf("reads %v, want the tunnel with the key alone", got)
		}
		refused(d, greDelete("10.0.0.1", "10.0.0.2"), &gre.GreTunnelAddDelReply{}, noSuchEntry)
		do(d, keyedDelete("10.0.0.1", "10.0.0.2", 7), &gre.GreTunnelAddDelV2Reply{})
		if again := d.gre("10.0.0.1", "10.0.0.2"); again != made && again != plain {
			d.Errorf("index %d, want one of %d and %d", again, plain, made)
		}
	})
}

// TestTheFirstGREDumpShowsKeyedTunnelsWithoutTheirKeys: only the second dump, with keys, distinguishes
// these tunnels.
func TestTheFirstGREDumpShowsKeyedTunnelsWithoutTheirKeys(t *testing.T) {
	both(t, func(d *device) {
		d.needs(&gre.GreTunnelAddDelV2{})
		made := do(d, keyed("10.0.0.1", "10.0.0.2", 7), &gre.GreTunnelAddDelV2Reply{}).SwIfIndex
		all := dump[*gre.GreTunnelDetails](d, &gre.GreTunnelDump{SwIfIndex: anyIndex})
		if len(all) != 1 || all[0].Tunnel.SwIfIndex != made || all[0].Tunnel.Dst != address("10.0.0.2") {
			d.Errorf("%+v", all)
		}
		one := dump[*gre.GreTunnelDetailsV2](d, &gre.GreTunnelDumpV2{SwIfIndex: made})
		if len(one) != 1 || one[0].Tunnel.Key != 7 || one[0].Tunnel.Type != gre.GRE_API_TUNNEL_TYPE_TEB {
			d.Errorf("%+v", one)
		}
	})
}

func TestAKeyedGRETunnelIsDownWithMTU9000(t *testing.T) {
	both(t, func(d *device) {
		d.needs(&gre.GreTunnelAddDelV2{})
		i := d.at(do(d, keyed("10.0.0.1", "10.0.0.2", 7), &gre.GreTunnelAddDelV2Reply{}).SwIfIndex)
		if i.InterfaceDevType != "GRE tunnel device" || i.Flags != 0 || i.Mtu[0] != 9000 {
			d.Errorf("device %q, flags %v, mtu %v", i.InterfaceDevType, i.Flags, i.Mtu)
		}
	})
}

func TestGRERefusals(t *testing.T) {
	both(t, func(d *device) {
		refused(d, greDelete("10.0.0.1", "10.0.0.2"), &gre.GreTunnelAddDelReply{}, noSuchEntry)
		refused(d, greTunnel("10.0.0.1", "10.0.0.1"), &gre.GreTunnelAddDelReply{}, sameEndpoints)
		refused(d, greTunnel("10.0.0.1", "fd00::1"), &gre.GreTunnelAddDelReply{}, -153)
		unknownTable := greTunnel("10.0.0.1", "10.0.0.2")
		unknownTable.Tunnel.OuterTableID = 9
		refused(d, unknownTable, &gre.GreTunnelAddDelReply{}, -3)
	})
}

func TestAGREInstanceIsTakenOnce(t *testing.T) {
	both(t, func(d *device) {
		request := greTunnel("10.0.0.1", "10.0.0.2")
		request.Tunnel.Instance = 7
		do(d, request, &gre.GreTunnelAddDelReply{})
		request.Tunnel.Dst = address("10.0.0.3")
		refused(d, request, &gre.GreTunnelAddDelReply{}, -147)
	})
}

func TestADeletedGRETunnelFreesItsIndex(t *testing.T) {
	both(t, func(d *device) {
		first := d.gre("10.0.0.1", "10.0.0.2")
		do(d, greDelete("10.0.0.1", "10.0.0.2"), &gre.GreTunnelAddDelReply{})
		if got := d.interfaces(); len(got) != 1 {
			d.Errorf("%d interfaces are left", len(got))
		}
		if again := d.gre("10.0.0.1", "10.0.0.2"); again != first {
			d.Errorf("index %d, want %d", again, first)
		}
	})
}

func TestAGREDumpEndsWithoutItsReply(t *testing.T) {
	for name, request := range map[string]api.Message{
		"gre_tunnel_details": &gre.GreTunnelDump{SwIfIndex: anyIndex}, "gre_tunnel_details_v2": &gre.GreTunnelDumpV2{SwIfIndex: anyIndex},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(d *device) {
				d.needs(request)
				d.gre("10.0.0.1", "10.0.0.2")
				stream, err := d.conn.NewStream(context.Background())
				if err != nil {
					d.Fatal(err)
				}
				defer stream.Close()
				for _, m := range []api.Message{request, &memclnt.ControlPing{}} {
					if err := stream.SendMsg(m); err != nil {
						d.Fatal(err)
					}
				}
				var got []string
				for len(got) < 2 {
					m, err := stream.RecvMsg()
					if err != nil {
						d.Fatal(err)
					}
					got = append(got, m.GetMessageName())
				}
				if got[0] != name || got[1] != "control_ping_reply" {
					d.Errorf("answers %v", got)
				}
			})
		})
	}
}
