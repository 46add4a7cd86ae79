package vppsim_test

import (
	"net/netip"
	"testing"
	"time"

	"go.fd.io/govpp/adapter"
	"go.fd.io/govpp/adapter/statsclient"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/gre"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/policer"
	"go.fd.io/govpp/binapi/policer_types"

	"longline.dev/agent/internal/vppsim"
)

func refusedWith[Reply interface {
	api.Message
	comparable
}](t *testing.T, conn api.Connection, request api.Message, reply Reply, retval func(Reply) int32, want int32) {
	t.Helper()
	if got := retval(invoke(t, conn, request, reply)); got != want {
		t.Fatalf("%s: retval %d, want %d", request.GetMessageName(), got, want)
	}
}

func TestABrokenPathStopsForwarding(t *testing.T) {
	for name, breakIt := range map[string]func(t *testing.T, sim *vppsim.Sim, conn api.Connection, sub, tunnel interface_types.InterfaceIndex){
		"one direction is taken away": func(t *testing.T, _ *vppsim.Sim, conn api.Connection, _, tunnel interface_types.InterfaceIndex) {
			invoke(t, conn, &l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: tunnel}, &l2.SwInterfaceSetL2XconnectReply{})
		},
		"the sub-interface is down": func(t *testing.T, _ *vppsim.Sim, conn api.Connection, sub, _ interface_types.InterfaceIndex) {
			invoke(t, conn, &interfaces.SwInterfaceSetFlags{SwIfIndex: sub}, &interfaces.SwInterfaceSetFlagsReply{})
		},
		"the port is down": func(t *testing.T, _ *vppsim.Sim, conn api.Connection, _, _ interface_types.InterfaceIndex) {
			invoke(t, conn, &interfaces.SwInterfaceSetFlags{SwIfIndex: customerPort}, &interfaces.SwInterfaceSetFlagsReply{})
		},
		"the cable is out": func(t *testing.T, sim *vppsim.Sim, _ api.Connection, _, _ interface_types.InterfaceIndex) {
			if err := sim.SetCarrier("host-cust1", false); err != nil {
				t.Fatal(err)
			}
		},
		"the route is gone": func(t *testing.T, _ *vppsim.Sim, conn api.Connection, _, _ interface_types.InterfaceIndex) {
			invoke(t, conn, &ip.IPRouteAddDel{Route: ip.IPRoute{Prefix: ip_types.Prefix{
				Address: address(t, "10.255.0.2"), Len: 32}}}, &ip.IPRouteAddDelReply{})
		},
		"the local address is gone": func(t *testing.T, _ *vppsim.Sim, conn api.Connection, _, _ interface_types.InterfaceIndex) {
			invoke(t, conn, &interfaces.SwInterfaceAddDelAddress{SwIfIndex: backbonePort, DelAll: true},
				&interfaces.SwInterfaceAddDelAddressReply{})
		},
		"a second sub-interface with the same tags was refused": func(t *testing.T, _ *vppsim.Sim, conn api.Connection, _, _ interface_types.InterfaceIndex) {
			refusedWith(t, conn, &interfaces.CreateSubif{SwIfIndex: customerPort, SubID: 999, OuterVlanID: 100, SubIfFlags: 2},
				&interfaces.CreateSubifReply{}, func(r *interfaces.CreateSubifReply) int32 { return r.Retval }, -1)
		},
		"the tunnel was deleted and a stranger has its index": func(t *testing.T, _ *vppsim.Sim, conn api.Connection, sub, tunnel interface_types.InterfaceIndex) {
			invoke(t, conn, &interfaces.DeleteSubif{SwIfIndex: sub}, &interfaces.DeleteSubifReply{})
			made := invoke(t, conn, &interfaces.CreateSubif{SwIfIndex: customerPort, SubID: 100, OuterVlanID: 100, SubIfFlags: 2},
				&interfaces.CreateSubifReply{})
			if made.SwIfIndex != sub {
				t.Fatalf("index %d, want %d", made.SwIfIndex, sub)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			sim := start(t, router)
			conn := connect(t, sim)
			sub, tunnel := vll(t, conn)
			if err := sim.Forwarding("host-cust1.100"); err != nil {
				t.Fatal(err)
			}
			breakIt(t, sim, conn, sub, tunnel)
			if sim.Forwarding("host-cust1.100") == nil {
				t.Error("it still forwards")
			}
		})
	}
}

func TestABrokenPathCountsNothing(t *testing.T) {
	now := newClock()
	config := router
	config.Clock, config.Traffic = now.Now, vppsim.Traffic{RateBps: 8_000_000}
	sim := start(t, config)
	conn, segment := connect(t, sim), stats(t, sim)
	sub, _ := vll(t, conn)
	invoke(t, conn, &interfaces.SwInterfaceSetFlags{SwIfIndex: sub}, &interfaces.SwInterfaceSetFlagsReply{})
	sim.Count()
	before := counters(t, segment)["host-cust1.100"]
	now.Advance(time.Minute)
	sim.Count()
	if after := counters(t, segment)["host-cust1.100"]; after != before {
		t.Errorf("from %+v to %+v", before, after)
	}
}

// As measured on VPP 25.10: received frames are dropped at the port as frames of an unknown VLAN. Sent
// frames still leave.
func TestARefusedDuplicateStopsReceivedFramesUntilTheFirstIsRecreated(t *testing.T) {
	now := newClock()
	config := router
	config.Clock, config.Traffic = now.Now, vppsim.Traffic{RateBps: 8_000_000}
	sim := start(t, config)
	conn, segment := connect(t, sim), stats(t, sim)
	sub, tunnel := vll(t, conn)
	client := statsclient.NewStatsClient(sim.StatsSocket())
	if err := client.Connect(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Disconnect() })
	type counted struct{ in, out, onPort, dropped, unknown, left bool }
	single := func(name string, index interface_types.InterfaceIndex) uint64 {
		t.Helper()
		return uint64(stat(t, client, name).(adapter.SimpleCounterStat)[0][index])
	}
	minute := func() counted {
		t.Helper()
		sim.Count()
		before, drops, unknown := counters(t, segment), single("/if/drops", customerPort), single("/err/ethernet-input/unknown vlan", 0)
		now.Advance(time.Minute)
		sim.Count()
		after := counters(t, segment)
		grew := func(name string, of func(api.InterfaceCounters) uint64) bool {
			return of(after[name]) > of(before[name])
		}
		rx := func(c api.InterfaceCounters) uint64 { return c.Rx.Packets }
		tx := func(c api.InterfaceCounters) uint64 { return c.Tx.Packets }
		return counted{
			grew("host-cust1.100", rx), grew("host-cust1.100", tx), grew("host-cust1", rx),
			single("/if/drops", customerPort) > drops, single("/err/ethernet-input/unknown vlan", 0) > unknown, grew("vxlan_tunnel0", tx),
		}
	}
	if got, want := minute(), (counted{true, true, true, false, false, true}); got != want {
		t.Errorf("at first %+v, want %+v", got, want)
	}
	refusedWith(t, conn, &interfaces.CreateSubif{SwIfIndex: customerPort, SubID: 999, OuterVlanID: 100, SubIfFlags: 2},
		&interfaces.CreateSubifReply{}, func(r *interfaces.CreateSubifReply) int32 { return r.Retval }, -1)
	if got, want := minute(), (counted{false, true, true, true, true, false}); got != want {
		t.Errorf("after the duplicate %+v, want %+v", got, want)
	}
	invoke(t, conn, &interfaces.DeleteSubif{SwIfIndex: sub}, &interfaces.DeleteSubifReply{})
	sub = invoke(t, conn, &interfaces.CreateSubif{SwIfIndex: customerPort, SubID: 100, OuterVlanID: 100, SubIfFlags: 2},
		&interfaces.CreateSubifReply{}).SwIfIndex
	invoke(t, conn, &interfaces.SwInterfaceSetFlags{SwIfIndex: sub, Flags: interface_types.IF_STATUS_API_FLAG_ADMIN_UP},
		&interfaces.SwInterfaceSetFlagsReply{})
	for rx, tx := range map[interface_types.InterfaceIndex]interface_types.InterfaceIndex{sub: tunnel, tunnel: sub} {
		invoke(t, conn, &l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: rx, TxSwIfIndex: tx, Enable: true}, &l2.SwInterfaceSetL2XconnectReply{})
	}
	if got, want := minute(), (counted{true, true, true, false, false, true}); got != want {
		t.Errorf("re-created %+v, want %+v", got, want)
	}
}

// TestFramesSentByOneRouterAreReceivedByTheOther builds both ends of one VLL on two routers with one clock.
func TestFramesSentByOneRouterAreReceivedByTheOther(t *testing.T) {
	now := newClock()
	count := func(local, remote string) api.InterfaceCounters {
		sim := start(t, vppsim.Config{
			Clock: now.Now, Traffic: vppsim.Traffic{RateBps: 8_000_000},
			Interfaces: []vppsim.Interface{{Name: "host-cust1"}, {Name: "host-bb0",
				Addresses: []netip.Prefix{netip.MustParsePrefix(local + "/32")}}},
			Routes: []vppsim.Route{{Prefix: netip.MustParsePrefix(remote + "/32")}},
		})
		conn, segment := connect(t, sim), stats(t, sim)
		made := invoke(t, conn, &gre.GreTunnelAddDel{IsAdd: true, Tunnel: gre.GreTunnel{Type: gre.GRE_API_TUNNEL_TYPE_TEB,
			Instance: none, Src: address(t, local), Dst: address(t, remote)}}, &gre.GreTunnelAddDelReply{})
		for rx, tx := range map[interface_types.InterfaceIndex]interface_types.InterfaceIndex{customerPort: made.SwIfIndex, made.SwIfIndex: customerPort} {
			invoke(t, conn, &l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: rx, TxSwIfIndex: tx, Enable: true}, &l2.SwInterfaceSetL2XconnectReply{})
		}
		invoke(t, conn, &interfaces.SwInterfaceSetFlags{SwIfIndex: made.SwIfIndex, Flags: interface_types.IF_STATUS_API_FLAG_ADMIN_UP},
			&interfaces.SwInterfaceSetFlagsReply{})
		now.Advance(10 * time.Second)
		sim.Count()
		if tunnel := counters(t, segment)["gre0"]; tunnel.Tx.Bytes != 0 || tunnel.Rx.Bytes == 0 {
			t.Errorf("GRE TEB counts what it receives and nothing it sends; got %+v", tunnel)
		}
		return counters(t, segment)["host-cust1"]
	}
	a := count("10.255.0.1", "10.255.0.2")
	now.Advance(-10 * time.Second)
	z := count("10.255.0.2", "10.255.0.1")
	if a.Rx != z.Tx || a.Tx != z.Rx || a.Rx == a.Tx {
		t.Errorf("a: rx %+v tx %+v; z: rx %+v tx %+v", a.Rx, a.Tx, z.Rx, z.Tx)
	}
}

func TestTrafficStaysBelowTheRateOfAPolicer(t *testing.T) {
	for name, c := range map[string]struct {
		exceeds bool
		above   bool
	}{
		"as lines are used":             {false, false},
		"where customers are to exceed": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			now := newClock()
			config := router
			config.Version = "26.06-vppsim"
			config.Clock, config.Traffic = now.Now, vppsim.Traffic{RateBps: 8_000_000, Exceeds: c.exceeds}
			sim := start(t, config)
			conn, segment := connect(t, sim), stats(t, sim)
			sub, _ := vll(t, conn)
			const kbps = 2000
			invoke(t, conn, &policer.PolicerAdd{Name: "line", Infos: policer_types.PolicerConfig{Cir: kbps, Cb: 64_000,
				Type: policer_types.SSE2_QOS_POLICER_TYPE_API_1R2C}}, &policer.PolicerAddReply{})
			invoke(t, conn, &policer.PolicerInput{Name: "line", SwIfIndex: sub, Apply: true}, &policer.PolicerInputReply{})
			above := false
			for range 20 {
				sim.Count()
				before := counters(t, segment)["host-cust1.100"]
				now.Advance(time.Minute)
				sim.Count()
				after := counters(t, segment)["host-cust1.100"]
				if after.Rx.Bytes == before.Rx.Bytes || after.Tx.Bytes == before.Tx.Bytes {
					t.Fatal("it carries nothing")
				}
				most := max(after.Rx.Bytes-before.Rx.Bytes, after.Tx.Bytes-before.Tx.Bytes)
				above = above || most > kbps*1000/8*60
			}
			if above != c.above {
				t.Errorf("more than the policer's rate was counted: %v", above)
			}
		})
	}
}
