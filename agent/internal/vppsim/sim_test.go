package vppsim_test

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"time"

	"go.fd.io/govpp/adapter"
	"go.fd.io/govpp/adapter/socketclient"
	"go.fd.io/govpp/adapter/statsclient"
	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/vpe"
	"go.fd.io/govpp/binapi/vxlan"
	"go.fd.io/govpp/core"

	"longline.dev/agent/internal/vppsim"
)

const none = ^uint32(0)

// clock is a time that only the test advances.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Unix(1_790_000_000, 0)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func start(t *testing.T, config vppsim.Config) *vppsim.Sim {
	t.Helper()
	sim, err := vppsim.Start(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Stop)
	return sim
}

func connect(t *testing.T, sim *vppsim.Sim) api.Connection {
	t.Helper()
	conn, err := core.Connect(socketclient.NewVppClient(sim.APISocket()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Disconnect)
	return conn
}

func invoke[Reply api.Message](t *testing.T, conn api.Connection, request api.Message, reply Reply) Reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := conn.Invoke(ctx, request, reply); err != nil {
		t.Fatalf("%s: %v", request.GetMessageName(), err)
	}
	return reply
}

func address(t *testing.T, s string) ip_types.Address {
	t.Helper()
	a, err := ip_types.ParseAddress(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

var router = vppsim.Config{
	Interfaces: []vppsim.Interface{
		{Name: "host-cust1"},
		{Name: "host-bb0", Addresses: []netip.Prefix{
			netip.MustParsePrefix("10.0.0.0/31"), netip.MustParsePrefix("10.255.0.1/32"),
			netip.MustParsePrefix("fd00::1/128")}},
	},
	Routes: []vppsim.Route{{Prefix: netip.MustParsePrefix("10.255.0.2/32")}},
}

const customerPort, backbonePort = interface_types.InterfaceIndex(1), interface_types.InterfaceIndex(2)

// vll configures a VLL as an agent would: VLAN 100 of the customer's port to a VXLAN tunnel.
func vll(t *testing.T, conn api.Connection) (sub, tunnel interface_types.InterfaceIndex) {
	t.Helper()
	sub = invoke(t, conn, &interfaces.CreateSubif{SwIfIndex: customerPort, SubID: 100, OuterVlanID: 100,
		SubIfFlags: interface_types.SUB_IF_API_FLAG_ONE_TAG | interface_types.SUB_IF_API_FLAG_EXACT_MATCH},
		&interfaces.CreateSubifReply{}).SwIfIndex
	tunnel = invoke(t, conn, &vxlan.VxlanAddDelTunnelV3{IsAdd: true, Instance: none,
		SrcAddress: address(t, "10.255.0.1"), DstAddress: address(t, "10.255.0.2"),
		McastSwIfIndex: interface_types.InterfaceIndex(none), DecapNextIndex: none, Vni: 70001},
		&vxlan.VxlanAddDelTunnelV3Reply{}).SwIfIndex
	for rx, tx := range map[interface_types.InterfaceIndex]interface_types.InterfaceIndex{sub: tunnel, tunnel: sub} {
		invoke(t, conn, &l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: rx, TxSwIfIndex: tx, Enable: true},
			&l2.SwInterfaceSetL2XconnectReply{})
	}
	invoke(t, conn, &interfaces.SwInterfaceSetFlags{SwIfIndex: sub, Flags: interface_types.IF_STATUS_API_FLAG_ADMIN_UP},
		&interfaces.SwInterfaceSetFlagsReply{})
	return sub, tunnel
}

func stats(t *testing.T, sim *vppsim.Sim) *core.StatsConnection {
	t.Helper()
	conn, err := core.ConnectStats(statsclient.NewStatsClient(sim.StatsSocket()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Disconnect)
	return conn
}

func counters(t *testing.T, conn *core.StatsConnection) map[string]api.InterfaceCounters {
	t.Helper()
	var read api.InterfaceStats
	if err := conn.GetInterfaceStats(&read); err != nil {
		t.Fatal(err)
	}
	byName := map[string]api.InterfaceCounters{}
	for _, c := range read.Interfaces {
		byName[c.InterfaceName] = c
	}
	return byName
}

func TestGovppReadsTheVersionAndTheInterfaces(t *testing.T) {
	sim := start(t, router)
	conn := connect(t, sim)
	if v := invoke(t, conn, &vpe.ShowVersion{}, &vpe.ShowVersionReply{}); v.Version != vppsim.DefaultVersion {
		t.Errorf("version %q", v.Version)
	}
	vll(t, conn)
	want := []string{"local0", "host-cust1", "host-bb0", "host-cust1.100", "vxlan_tunnel0"}
	got := sim.Interfaces()
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for n := range want {
		if got[n] != want[n] {
			t.Errorf("index %d: got %s, want %s", n, got[n], want[n])
		}
	}
}

func TestACompleteVLLForwardsAndCountsInBothDirections(t *testing.T) {
	now := newClock()
	config := router
	config.Clock = now.Now
	config.Traffic = vppsim.Traffic{RateBps: 8_000_000, FrameBytes: 500}
	sim := start(t, config)
	conn, segment := connect(t, sim), stats(t, sim)
	vll(t, conn)
	if err := sim.Forwarding("host-cust1.100"); err != nil {
		t.Fatal(err)
	}
	sim.Count()
	before := counters(t, segment)["host-cust1.100"]
	now.Advance(10 * time.Second)
	sim.Count()
	after := counters(t, segment)["host-cust1.100"]
	for direction, pair := range map[string][2]api.InterfaceCounterCombined{
		"in": {before.Rx, after.Rx}, "out": {before.Tx, after.Tx}} {
		bytes, packets := pair[1].Bytes-pair[0].Bytes, pair[1].Packets-pair[0].Packets
		if bytes < 7_500_000 || bytes > 12_500_000 {
			t.Errorf("%s: %d bytes in 10 s at 8 Mbit/s", direction, bytes)
		}
		if packets*500 != bytes {
			t.Errorf("%s: %d packets of 500 bytes are not %d bytes", direction, packets, bytes)
		}
	}
	if tunnel := counters(t, segment)["vxlan_tunnel0"]; tunnel.Rx.Bytes != after.Tx.Bytes || tunnel.Tx.Bytes != after.Rx.Bytes {
		t.Errorf("the tunnel counts %+v against the access side's %+v", tunnel, after)
	}
}

func TestStatsNamesFollowTheInterfaces(t *testing.T) {
	sim := start(t, router)
	conn, segment := connect(t, sim), stats(t, sim)
	sub, _ := vll(t, conn)
	if c, known := counters(t, segment)["host-cust1.100"]; !known || c.InterfaceIndex != uint32(sub) {
		t.Errorf("host-cust1.100 is %+v, want index %d", c, sub)
	}
	invoke(t, conn, &interfaces.DeleteSubif{SwIfIndex: sub}, &interfaces.DeleteSubifReply{})
	if _, known := counters(t, segment)["host-cust1.100"]; known {
		t.Error("the deleted sub-interface still has its name")
	}
}

func TestARestartLosesAllConfigurationAndCutsConnections(t *testing.T) {
	now := newClock()
	config := router
	config.Clock = now.Now
	sim := start(t, config)
	conn := connect(t, sim)
	old, err := statsclient.NewStatsClient(sim.StatsSocket()), error(nil)
	if err = old.Connect(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { old.Disconnect() })
	bootBefore := scalar(t, old, "/sys/boottime")
	vll(t, conn)
	now.Advance(time.Minute)
	if err := sim.Restart(); err != nil {
		t.Fatal(err)
	}
	if got := sim.Interfaces(); len(got) != 3 {
		t.Errorf("after the restart there are %v", got)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := conn.Invoke(ctx, &vpe.ShowVersion{}, &vpe.ShowVersionReply{}); err == nil {
		t.Error("the old connection still answers")
	}
	invoke(t, connect(t, sim), &vpe.ShowVersion{}, &vpe.ShowVersionReply{})
	fresh := statsclient.NewStatsClient(sim.StatsSocket())
	if err := fresh.Connect(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fresh.Disconnect() })
	if boot := scalar(t, fresh, "/sys/boottime"); boot != bootBefore+60 {
		t.Errorf("boot time %v, before it was %v", boot, bootBefore)
	}
}

func scalar(t *testing.T, client *statsclient.StatsClient, name string) float64 {
	t.Helper()
	return float64(stat(t, client, name).(adapter.ScalarStat))
}

func stat(t *testing.T, client *statsclient.StatsClient, name string) adapter.Stat {
	t.Helper()
	entries, err := client.DumpStats("^" + name + "$")
	if err != nil || len(entries) != 1 {
		t.Fatalf("%s: %v, %v", name, entries, err)
	}
	return entries[0].Data
}
