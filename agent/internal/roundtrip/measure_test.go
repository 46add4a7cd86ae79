package roundtrip

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/vxlan"

	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
	"longline.dev/agent/internal/vppsim"
)

// The far router's addresses, and an address that has a route but does not respond.
var (
	far4, far6 = netip.MustParseAddr("10.255.0.2"), netip.MustParseAddr("fd00:255::2")
	silent     = netip.MustParseAddr("10.0.0.77")
)

// onEveryPair runs a test against the CLI socket of a router with an address of each family on loop0.
func onEveryPair(t *testing.T, test func(t *testing.T, socket string)) {
	t.Run("vppsim", func(t *testing.T) { test(t, newSimulatedPair(t)) })
	t.Run("real VPP", func(t *testing.T) {
		pair := realvpp.StartPairOrSkip(t, realvpp.Options{Plugins: []string{"ping", "memif"}})
		test(t, pair[0].CLISocket())
	})
}

// newSimulatedPair creates a tunnel between the two routers: a stand-in is reachable at the address where
// its tunnels begin.
func newSimulatedPair(t *testing.T) (socket string) {
	t.Helper()
	underlay := t.TempDir()
	for at, own := range [2][2]string{{"10.255.0.2", "fd00:255::2"}, {"10.255.0.1", "fd00:255::1"}} {
		far := [2]string{fmt.Sprint("10.255.0.", at+1), fmt.Sprint("fd00:255::", at+1)}
		config := vppsim.Config{Underlay: underlay, Interfaces: []vppsim.Interface{{Name: "loop0"}}, Routes: []vppsim.Route{{Prefix: netip.PrefixFrom(silent, 32)}}}
		for family := range own {
			address, remote := netip.MustParseAddr(own[family]), netip.MustParseAddr(far[family])
			config.Interfaces[0].Addresses = append(config.Interfaces[0].Addresses, netip.PrefixFrom(address, address.BitLen()))
			config.Routes = append(config.Routes, vppsim.Route{Prefix: netip.PrefixFrom(remote, remote.BitLen())})
		}
		sim, err := vppsim.Start(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(sim.Stop)
		session, err := vpp.Dialer{Socket: sim.APISocket(), Timeout: 5 * time.Second, BootMS: func(ctx context.Context) (int64, error) {
			return statseg.BootTime(ctx, sim.StatsSocket())
		}}.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(session.Close)
		for family := range own {
			_, err := session.Call(t.Context(), &vxlan.VxlanAddDelTunnelV3{IsAdd: true, Instance: ^uint32(0), Vni: 7, DecapNextIndex: ^uint32(0),
				McastSwIfIndex: ^interface_types.InterfaceIndex(0), SrcAddress: vpp.IPAddress(netip.MustParseAddr(own[family])),
				DstAddress: vpp.IPAddress(netip.MustParseAddr(far[family]))})
			if err != nil {
				t.Fatal(err)
			}
		}
		socket = sim.CLISocket()
	}
	return socket
}

func TestReturnedPacketsAreTimed(t *testing.T) {
	onEveryPair(t, func(t *testing.T, socket string) {
		for _, to := range []netip.Addr{far4, far6} {
			began := time.Now()
			for times := (Times{}); times.Received == 0; { // until the link is up and neighbours are resolved
				times, _ = ping(t.Context(), socket, Path{"loop0", to}, soon)
			}
			times, err := Measure(t.Context(), socket, Path{"loop0", to})
			if err != nil || times.Sent != packets || times.Received != packets {
				t.Fatalf("%s: %+v, %v", to, times, err)
			}
			if times.Min <= 0 || times.Min > times.Avg || times.Avg > times.Max || times.Max > time.Since(began) {
				t.Errorf("%s: %+v, in %s", to, times, time.Since(began))
			}
		}
	})
}

func TestNoReplyIsNoError(t *testing.T) {
	onEveryPair(t, func(t *testing.T, socket string) {
		times, err := Measure(t.Context(), socket, Path{"loop0", silent})
		if err != nil || times != (Times{Sent: packets}) {
			t.Errorf("%+v, %v", times, err)
		}
	})
}

func TestAnInterfaceWithoutAnAddressSendsNothing(t *testing.T) {
	onEveryPair(t, func(t *testing.T, socket string) {
		if times, err := Measure(t.Context(), socket, Path{"local0", far4}); err == nil {
			t.Errorf("%+v", times)
		}
	})
}

func TestTheErrorNamesTheMissingCLISocketOrPingPlugin(t *testing.T) {
	real := realvpp.StartOrSkip(t, realvpp.Options{Plugins: []string{"vxlan"}})
	closed := filepath.Join(t.TempDir(), "cli.sock")
	if err := os.WriteFile(closed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for socket, reason := range map[string]string{
		filepath.Join(t.TempDir(), "cli.sock"): "vpp.cli_socket", closed: "vpp.cli_socket", real.CLISocket(): "ping plugin",
	} {
		_, err := Measure(t.Context(), socket, Path{"loop0", far4})
		var cannot *CannotError
		if !errors.As(err, &cannot) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v", socket, err)
		}
	}
}

func TestCancellingTheContextStopsThePing(t *testing.T) {
	onEveryPair(t, func(t *testing.T, socket string) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		if _, err := vpp.CLI(ctx, socket, "ping 10.0.0.77 source loop0 repeat 1 interval 60"); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

func TestUnparseableOutputIsAnError(t *testing.T) {
	const statistics = "Statistics: 1 sent, 1 received, 0.000000% packet loss\n"
	for name, text := range map[string]string{
		"nothing":          "",
		"no statistics":    "116 bytes from 10.255.0.2: icmp_seq=1 ttl=64 time=.0713 ms\n",
		"no time":          "116 bytes from 10.255.0.2: icmp_seq=1 ttl=64 time=soon ms\n" + statistics,
		"a time before":    "116 bytes from 10.255.0.2: icmp_seq=1 ttl=64 time=-1.0 ms\n" + statistics,
		"an answer missed": statistics,
		"nothing sent":     "Failed: no source address for egress interface\nStatistics: 0 sent, 0 received, 0.000000% packet loss\n",
	} {
		if times, err := read(text); err == nil {
			t.Errorf("%s: %+v", name, times)
		}
	}
	times, err := read("116 bytes from 10.255.0.2: icmp_seq=1 ttl=64 time=.0713 ms\r\n116 bytes from 10.255.0.2: icmp_seq=2 ttl=64 time=1.0287 ms\r\n\r\n" +
		"Statistics: 3 sent, 2 received, 33.333330% packet loss\r\n")
	want := Times{Sent: 3, Received: 2, Min: 71300 * time.Nanosecond, Avg: 550 * time.Microsecond, Max: 1028700 * time.Nanosecond}
	if err != nil || times != want {
		t.Errorf("%+v, %v", times, err)
	}
}
