package vppsim_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.fd.io/govpp/adapter"
	"go.fd.io/govpp/adapter/statsclient"
	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/pg"
	"go.fd.io/govpp/binapi/vlib"
	"go.fd.io/govpp/binapi/vxlan"

	"longline.dev/agent/internal/vppsim"
)

// site is one of two stand-ins on an underlay, with a tunnel to the other.
type site struct {
	*vppsim.Sim
	t      *testing.T
	conn   api.Connection
	tunnel interface_types.InterfaceIndex
}

func newSite(t *testing.T, config vppsim.Config, n int) *site {
	t.Helper()
	config.Interfaces = []vppsim.Interface{{Name: "loop0", Addresses: []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.255.0.%d/32", n))}}}
	config.Routes = []vppsim.Route{{Prefix: netip.MustParsePrefix("10.255.0.0/24")}}
	s := &site{Sim: start(t, config), t: t}
	s.begin(n, 7)
	return s
}

// begin makes the tunnel to the other and a generator.
func (s *site) begin(n int, vni uint32) {
	s.t.Helper()
	s.conn = connect(s.t, s.Sim)
	s.tunnel = invoke(s.t, s.conn, &vxlan.VxlanAddDelTunnelV3{
		IsAdd: true, Instance: none, Vni: vni, DecapNextIndex: none, McastSwIfIndex: interface_types.InterfaceIndex(none),
		SrcAddress: address(s.t, fmt.Sprint("10.255.0.", n)), DstAddress: address(s.t, fmt.Sprint("10.255.0.", 3-n)),
	}, &vxlan.VxlanAddDelTunnelV3Reply{}).SwIfIndex
	invoke(s.t, s.conn, &pg.PgCreateInterfaceV3{InterfaceID: 1}, &pg.PgCreateInterfaceV3Reply{})
}

func (s *site) send(size, count int) {
	s.t.Helper()
	for _, line := range []string{
		fmt.Sprintf("packet-generator new { name x limit %d rate 1000 size %d-%d source pg1 node vxlan_tunnel0 data { hex 0x00 } }", count, size, size),
		"packet-generator enable-stream x",
	} {
		if reply := invoke(s.t, s.conn, &vlib.CliInband{Cmd: line}, &vlib.CliInbandReply{}); reply.Reply != "" {
			s.t.Fatal(reply.Reply)
		}
	}
}

func (s *site) received() uint64 {
	s.t.Helper()
	client := statsclient.NewStatsClient(s.StatsSocket())
	if err := client.Connect(); err != nil {
		s.t.Fatal(err)
	}
	defer client.Disconnect()
	entries, err := client.DumpStats("^/if/rx$")
	if err != nil || len(entries) != 1 {
		s.t.Fatal(entries, err)
	}
	return entries[0].Data.(adapter.CombinedCounterStat)[0][s.tunnel].Packets()
}

func (s *site) awaitReceived(want uint64) {
	s.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); s.received() != want; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("received %d frames, want %d", s.received(), want)
		}
	}
}

func TestFramesFindTheTunnelThatMirrorsTheirs(t *testing.T) {
	underlay := filepath.Join(t.TempDir(), "underlay")
	a, z := newSite(t, vppsim.Config{Underlay: underlay}, 1), newSite(t, vppsim.Config{Underlay: underlay}, 2)
	a.send(1500, 5)
	z.awaitReceived(5)
	z.send(1500, 3)
	a.awaitReceived(3)

	flags := &interfaces.SwInterfaceSetFlags{SwIfIndex: z.tunnel}
	invoke(t, z.conn, flags, &interfaces.SwInterfaceSetFlagsReply{})
	a.send(1500, 5) // the tunnel is down
	flags.Flags = interface_types.IF_STATUS_API_FLAG_ADMIN_UP
	z.send(64, 1) // comes back when the others are through
	a.awaitReceived(3)
	invoke(t, z.conn, flags, &interfaces.SwInterfaceSetFlagsReply{})
	a.send(1500, 1)
	z.awaitReceived(6)

	for name, vni := range map[string]uint32{"another VNI": 8, "the same again": 7} {
		if err := z.Restart(); err != nil {
			t.Fatal(err)
		}
		a.send(1500, 9) // nobody is there
		z.begin(2, vni)
		a.send(1500, 2)
		if name == "the same again" {
			z.awaitReceived(2)
		} else if time.Sleep(50 * time.Millisecond); z.received() != 0 {
			t.Errorf("%s: received %d", name, z.received())
		}
	}
}

func TestAFrameThatALinkDoesNotLetThroughIsLost(t *testing.T) {
	underlay, file := t.TempDir(), filepath.Join(t.TempDir(), "vppsim.json")
	write := func(links vppsim.Links) {
		t.Helper()
		text, err := json.Marshal(map[string]any{"links": links})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(vppsim.Links{})
	reload := func() (vppsim.Links, error) {
		config, err := vppsim.LoadConfig(file)
		return config.Links, err
	}
	a, z := newSite(t, vppsim.Config{Underlay: underlay, Reload: reload}, 1), newSite(t, vppsim.Config{Underlay: underlay}, 2)
	a.send(8964, 1)
	z.awaitReceived(1)
	a.send(8965, 10)
	a.send(64, 1)
	z.awaitReceived(2)
	write(vppsim.Links{MTU: 1550}) // while it runs
	a.send(1515, 10)
	a.send(1514, 1)
	z.awaitReceived(3)
	z.send(1515, 10) // what comes to the router passes its links too
	z.send(1514, 1)
	a.awaitReceived(1)
}

func TestAStandInWithoutAnUnderlaySendsNowhere(t *testing.T) {
	underlay := t.TempDir()
	a, z := newSite(t, vppsim.Config{}, 1), newSite(t, vppsim.Config{Underlay: underlay}, 2)
	a.send(1500, 5)
	z.send(1500, 5)
	if a.received() != 0 || z.received() != 0 {
		t.Errorf("received %d and %d", a.received(), z.received())
	}
	z.Stop()
	if left, err := os.ReadDir(underlay); err != nil || len(left) != 0 {
		t.Errorf("left in the underlay: %v, %v", left, err)
	}
}
