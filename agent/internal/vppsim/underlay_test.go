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
	n      int // 1 or 2: the last part of its address
	conn   api.Connection
	tunnel interface_types.InterfaceIndex
}

func newSite(t *testing.T, config vppsim.Config, n int) *site {
	t.Helper()
	config.Interfaces = []vppsim.Interface{{Name: "loop0", Addresses: []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.255.0.%d/32", n))}}}
	config.Routes = []vppsim.Route{{Prefix: netip.MustParsePrefix("10.255.0.0/24")}}
	s := &site{Sim: start(t, config), t: t, n: n}
	s.begin(7)
	return s
}

// begin creates the tunnel to the other site, and a generator.
func (s *site) begin(vni uint32) {
	s.t.Helper()
	s.conn = connect(s.t, s.Sim)
	s.tunnel = s.addTunnel(vni)
	invoke(s.t, s.conn, &pg.PgCreateInterfaceV3{InterfaceID: 1}, &pg.PgCreateInterfaceV3Reply{})
}

func (s *site) addTunnel(vni uint32) interface_types.InterfaceIndex {
	s.t.Helper()
	return invoke(s.t, s.conn, &vxlan.VxlanAddDelTunnelV3{
		IsAdd: true, Instance: none, Vni: vni, DecapNextIndex: none, McastSwIfIndex: interface_types.InterfaceIndex(none),
		SrcAddress: address(s.t, fmt.Sprint("10.255.0.", s.n)), DstAddress: address(s.t, fmt.Sprint("10.255.0.", 3-s.n)),
	}, &vxlan.VxlanAddDelTunnelV3Reply{}).SwIfIndex
}

// send sends frames into the tunnel to the other site.
func (s *site) send(size, count int) {
	s.t.Helper()
	s.sendTo("vxlan_tunnel0", size, count)
}

func (s *site) sendTo(node string, size, count int) {
	s.t.Helper()
	for _, line := range []string{
		fmt.Sprintf("packet-generator new { name x limit %d rate 1000 size %d-%d source pg1 node %s data { hex 0x00 } }", count, size, size, node),
		"packet-generator enable-stream x",
	} {
		if reply := invoke(s.t, s.conn, &vlib.CliInband{Cmd: line}, &vlib.CliInbandReply{}); reply.Reply != "" {
			s.t.Fatal(reply.Reply)
		}
	}
}

func (s *site) received() uint64 {
	s.t.Helper()
	return s.stat("/if/rx").(adapter.CombinedCounterStat)[0][s.tunnel].Packets()
}

// unknown returns the number of frames received for a tunnel that does not exist.
func (s *site) unknown() uint64 {
	s.t.Helper()
	return uint64(s.stat("/err/vxlan4-input/no such tunnel packets").(adapter.SimpleCounterStat)[0][0])
}

func (s *site) stat(name string) adapter.Stat {
	s.t.Helper()
	client := statsclient.NewStatsClient(s.StatsSocket())
	if err := client.Connect(); err != nil {
		s.t.Fatal(err)
	}
	defer client.Disconnect()
	return stat(s.t, client, name)
}

func (s *site) awaitReceived(want uint64) {
	s.t.Helper()
	s.await("received", s.received, want)
}

func (s *site) await(condition string, count func() uint64, want uint64) {
	s.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); count() != want; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%s %d frames, want %d", condition, count(), want)
		}
	}
}

func TestFramesReachTheMatchingTunnelOfTheFarRouter(t *testing.T) {
	underlay := filepath.Join(t.TempDir(), "underlay")
	a, z := newSite(t, vppsim.Config{Underlay: underlay}, 1), newSite(t, vppsim.Config{Underlay: underlay}, 2)
	a.send(1500, 5)
	z.awaitReceived(5)
	z.send(1500, 3)
	a.awaitReceived(3)

	flags := &interfaces.SwInterfaceSetFlags{SwIfIndex: z.tunnel}
	invoke(t, z.conn, flags, &interfaces.SwInterfaceSetFlagsReply{})
	a.send(1500, 5) // the tunnel is down
	a.addTunnel(9)
	a.sendTo("vxlan_tunnel1", 64, 1) // a tunnel that the other does not have
	z.await("did not know", z.unknown, 1)
	flags.Flags = interface_types.IF_STATUS_API_FLAG_ADMIN_UP
	invoke(t, z.conn, flags, &interfaces.SwInterfaceSetFlagsReply{})
	a.send(1500, 1)
	z.awaitReceived(6)

	for name, vni := range map[string]uint32{"another VNI": 8, "the same again": 7} {
		if err := z.Restart(); err != nil {
			t.Fatal(err)
		}
		a.send(1500, 9) // no router listens there
		z.begin(vni)
		a.send(1500, 2)
		if name == "the same again" {
			z.awaitReceived(2)
		} else if z.await("did not know", z.unknown, 2); z.received() != 0 {
			t.Errorf("%s: received %d", name, z.received())
		}
	}
}

func TestAFrameLargerThanALinksMTUIsLost(t *testing.T) {
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
	z.send(1515, 10) // frames to the router pass its links too
	z.send(1514, 1)
	a.awaitReceived(1)
}

func TestFramesAreLostWithoutAnUnderlay(t *testing.T) {
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

func TestTheGeneratorRefusesAStreamWithAWrongRateOrNode(t *testing.T) {
	s := newSite(t, vppsim.Config{}, 1)
	cli := func(line string) *vlib.CliInbandReply {
		return invoke(t, s.conn, &vlib.CliInband{Cmd: line}, &vlib.CliInbandReply{})
	}
	const frame = "data { hex 0x000000000002000000000001080000 } }"
	for _, stream := range []string{
		"new { name x limit 1 size 64-64 source pg1 node vxlan_tunnel0 " + frame,                       // a node sends without a rate
		"new { name x limit 1 size 64-64 node vxlan_tunnel0 " + frame,                                  // without a source too
		"new { name x limit 1 rate 1000 size 64-64 source pg1 node ethernet-input " + frame,            // ethernet-input is no interface
		"new { name x limit 1 rate 1000 size 64-64 source pg1 node vxlan_tunnel1 " + frame,             // no such interface
		"new { name x limit 1 rate 1000 size 64-64 interface pg1 node ethernet-input " + frame,         // an interface receives without a rate
		"new { name x limit 1 size 64-64 interface pg1 node vxlan_tunnel0 " + frame,                    // an interface receives by ethernet-input
		"new { name x limit 1 size 64-64 interface pg2 node ethernet-input " + frame,                   // no such generator
		"new { name x limit 1 size 64-64 interface pg1 node ethernet-input data { hex 0x000000000 } }", // half a byte
	} {
		if reply := cli("packet-generator " + stream); reply.Retval == 0 || reply.Reply == "" {
			t.Errorf("%s: retval %d, %q", stream, reply.Retval, reply.Reply)
		}
	}
	if streams := cli("show packet-generator").Reply; streams != "no streams currently defined\n" {
		t.Errorf("streams after refusals: %s", streams)
	}
	for _, stream := range []string{
		"new { name x limit 1 rate 1000 size 64-64 source pg1 node vxlan_tunnel0 " + frame,
		"new { name x limit 1 size 64-64 interface pg1 node ethernet-input " + frame,
	} {
		if reply := cli("packet-generator " + stream); reply.Retval != 0 || reply.Reply != "" {
			t.Errorf("%s: retval %d, %q", stream, reply.Retval, reply.Reply)
		}
	}
}
