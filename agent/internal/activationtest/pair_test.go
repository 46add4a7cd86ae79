package activationtest

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/geneve"
	"go.fd.io/govpp/binapi/gre"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/tunnel_types"
	"go.fd.io/govpp/binapi/vlib"
	"go.fd.io/govpp/binapi/vxlan"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
	"longline.dev/agent/internal/vppsim"
)

const (
	none     = ^uint32(0)
	patience = 20 * time.Second
)

// router is one of two VPPs with a link of 9,000 bytes between them.
type router struct {
	t       *testing.T
	session *vpp.Session
	dial    func() *vpp.Session
	stats   *statseg.ReopeningSegment
	local   map[int]netip.Addr // tunnel address of each family
	// smallLink sets the MTU of the router's own side of the link (bytes).
	smallLink func(mtu int)
}

func loopbacks(n int) map[int]netip.Addr {
	return map[int]netip.Addr{4: netip.MustParseAddr(fmt.Sprint("10.255.0.", n)), 6: netip.MustParseAddr(fmt.Sprint("fd00:255::", n))}
}

// onEveryPair runs a test on two stand-ins and, if a real VPP is installed, on two real VPPs joined by
// memif.
func onEveryPair(t *testing.T, test func(t *testing.T, a, z *router)) {
	t.Run("vppsim", func(t *testing.T) {
		underlay := filepath.Join(t.TempDir(), strings.Repeat("a long way down/", 8)) // longer than the path of a socket may be
		a, z := newSimulated(t, underlay, 1), newSimulated(t, underlay, 2)
		test(t, a, z)
	})
	t.Run("real VPP", func(t *testing.T) {
		pair := realvpp.StartPairOrSkip(t, realvpp.Options{Plugins: []string{"vxlan", "geneve", "gre", "memif"}})
		a, z := newReal(t, pair[0], 1), newReal(t, pair[1], 2)
		if missing := Missing(a.session.Has); missing != "" {
			t.Skipf("SKIPPED ON THIS VPP: it has no message %s", missing)
		}
		a.awaitLink(z)
		test(t, a, z)
	})
}

func newSimulated(t *testing.T, underlay string, n int) *router {
	t.Helper()
	var links atomic.Pointer[vppsim.Links]
	links.Store(&vppsim.Links{})
	local, far := loopbacks(n), loopbacks(3-n)
	sim, err := vppsim.Start(t.Context(), vppsim.Config{
		Underlay: underlay, Reload: func() (vppsim.Links, error) { return *links.Load(), nil },
		Interfaces: []vppsim.Interface{{Name: "loop0", Addresses: []netip.Prefix{netip.PrefixFrom(local[4], 32), netip.PrefixFrom(local[6], 128)}}},
		Routes:     []vppsim.Route{{Prefix: netip.PrefixFrom(far[4], 32)}, {Prefix: netip.PrefixFrom(far[6], 128)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Stop)
	r := newRouter(t, sim.APISocket(), sim.StatsSocket(), n)
	r.smallLink = func(mtu int) { links.Store(&vppsim.Links{FragmentsOver: mtu}) }
	return r
}

func newReal(t *testing.T, real *realvpp.VPP, n int) *router {
	t.Helper()
	r := newRouter(t, real.APISocket(), real.StatsSocket(), n)
	r.smallLink = func(mtu int) {
		if _, err := real.CLI(fmt.Sprintf("set interface mtu packet %d memif1/0", mtu)); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func newRouter(t *testing.T, api, stats string, n int) *router {
	t.Helper()
	r := &router{t: t, stats: statseg.NewReopeningSegment(stats), local: loopbacks(n)}
	t.Cleanup(r.stats.Close)
	r.dial = func() *vpp.Session {
		t.Helper()
		session, err := vpp.Dialer{Socket: api, Timeout: realvpp.ReplyTimeout, BootMS: func(ctx context.Context) (int64, error) {
			return statseg.BootTime(ctx, stats)
		}}.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(session.Close)
		return session
	}
	r.session = r.dial()
	return r
}

func (r *router) must(request api.Message) api.Message {
	r.t.Helper()
	reply, err := r.session.Call(r.t.Context(), request)
	if err != nil {
		r.t.Fatal(err)
	}
	if retval := vpp.Retval(reply); retval != 0 {
		r.t.Fatalf("%s: %v", request.GetMessageName(), api.RetvalToVPPApiError(retval))
	}
	return reply
}

// cli runs a command of another user and returns its output.
func (r *router) cli(line string) string {
	r.t.Helper()
	reply, err := r.session.Call(r.t.Context(), &vlib.CliInband{Cmd: line})
	if err != nil {
		r.t.Fatal(err)
	}
	return reply.(*vlib.CliInbandReply).Reply
}

// interfaces returns all interfaces by name.
func (r *router) interfaces() map[string]*interfaces.SwInterfaceDetails {
	r.t.Helper()
	found := make(map[string]*interfaces.SwInterfaceDetails)
	all := []api.Message{&interfaces.SwInterfaceDump{SwIfIndex: interface_types.InterfaceIndex(none)}}
	err := r.session.Dump(r.t.Context(), all, func(msg api.Message) {
		m := msg.(*interfaces.SwInterfaceDetails)
		found[vpp.Text(m.InterfaceName)] = m
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return found
}

// mustBeTidy fails if the agent's generator or stream still exists.
func (r *router) mustBeTidy(t *testing.T, when string) {
	t.Helper()
	if r.interfaces()[generatorName] != nil {
		t.Errorf("%s: the generator is left", when)
	}
	if streams := r.cli("show packet-generator"); strings.Contains(streams, streamName) {
		t.Errorf("%s: the stream is left: %s", when, streams)
	}
}

// tunnel is one end of a tunnel.
type tunnel struct {
	*router
	name  string
	index uint32
}

// tunnelTo creates this router's end of a tunnel.
func (r *router) tunnelTo(far *router, encapsulation intent.Encapsulation, family int) tunnel {
	r.t.Helper()
	local, remote := vpp.IPAddress(r.local[family]), vpp.IPAddress(far.local[family])
	var index interface_types.InterfaceIndex
	switch encapsulation {
	case intent.VXLAN:
		index = r.must(&vxlan.VxlanAddDelTunnelV3{IsAdd: true, Instance: none, SrcAddress: local, DstAddress: remote, Vni: 7,
			McastSwIfIndex: interface_types.InterfaceIndex(none), DecapNextIndex: none}).(*vxlan.VxlanAddDelTunnelV3Reply).SwIfIndex
	case intent.GENEVE:
		index = r.must(&geneve.GeneveAddDelTunnel2{IsAdd: true, LocalAddress: local, RemoteAddress: remote, Vni: 7,
			McastSwIfIndex: interface_types.InterfaceIndex(none), DecapNextIndex: none}).(*geneve.GeneveAddDelTunnel2Reply).SwIfIndex
	default:
		return r.greTo(far, family, 0)
	}
	return r.tunnelAt(index)
}

// greTo creates this router's end of a GRE tunnel with that key (0 for none) and sets it up.
func (r *router) greTo(far *router, family int, key uint32) tunnel {
	r.t.Helper()
	index := r.must(&gre.GreTunnelAddDelV2{IsAdd: true, Tunnel: gre.GreTunnelV2{
		Type: gre.GRE_API_TUNNEL_TYPE_TEB, Mode: tunnel_types.TUNNEL_API_MODE_P2P, Instance: none,
		Src: vpp.IPAddress(r.local[family]), Dst: vpp.IPAddress(far.local[family]), Key: key,
	}}).(*gre.GreTunnelAddDelV2Reply).SwIfIndex
	r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: index, Flags: interface_types.IF_STATUS_API_FLAG_ADMIN_UP})
	return r.tunnelAt(index)
}

func (r *router) tunnelAt(index interface_types.InterfaceIndex) tunnel {
	r.t.Helper()
	for name, i := range r.interfaces() {
		if i.SwIfIndex == index {
			return tunnel{r, name, uint32(index)}
		}
	}
	r.t.Fatalf("the tunnel %d is not there", index)
	return tunnel{}
}

func (u tunnel) counters() statseg.TunnelCounters {
	u.t.Helper()
	counters, err := u.stats.TunnelCounters(u.session.Info().BootMS, u.index, u.name)
	if err != nil {
		u.t.Fatal(err)
	}
	return counters
}

// send sends frames of that size and checks that all of them were sent.
func (u tunnel) send(size, count int) {
	u.t.Helper()
	sent, err := Send(u.t.Context(), u.session, Frames{Tunnel: u.name, Size: size, Count: count, Rate: 10000})
	if err != nil || sent != count {
		u.t.Fatalf("sent %d of %d frames of %d bytes: %v", sent, count, size, err)
	}
}

// arrived sends frames in one direction, and then known frames, which surely arrive. When the known frames
// have arrived, it need not wait for the other frames any longer.
func arrived(t *testing.T, from, to tunnel, size, count int) uint64 {
	t.Helper()
	const known = 3
	before := to.counters().Rx
	from.send(size, count)
	from.send(64, known)
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		rx := to.counters().Rx - before
		if rx == known { // none of the other frames, or only some of them so far
			to.settle()
			rx = to.counters().Rx - before
		}
		switch {
		case rx == known || rx == known+uint64(count):
			return rx - known
		case time.Now().After(deadline):
			t.Fatalf("%s received %d frames of %d and %d", to.name, rx, count, known)
		}
	}
}

// settle waits until no frame of an interrupted stream is still on its way to the tunnel.
func (u tunnel) settle() {
	for before := u.counters().Rx; ; {
		time.Sleep(200 * time.Millisecond)
		now := u.counters().Rx
		if now == before {
			return
		}
		before = now
	}
}

// awaitLink waits until frames arrive: the two memifs must connect, and then the neighbours must be
// resolved.
func (r *router) awaitLink(far *router) {
	r.t.Helper()
	for _, family := range []int{4, 6} {
		near, other := r.tunnelTo(far, intent.GRE, family), far.tunnelTo(r, intent.GRE, family)
		for deadline := time.Now().Add(patience); near.counters().Rx == 0 || other.counters().Rx == 0; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				r.t.Fatal("the link does not come up")
			}
			near.send(64, 1)
			other.send(64, 1)
		}
		for _, end := range []struct{ here, there *router }{{r, far}, {far, r}} {
			end.here.must(&gre.GreTunnelAddDel{Tunnel: gre.GreTunnel{Type: gre.GRE_API_TUNNEL_TYPE_TEB, Mode: tunnel_types.TUNNEL_API_MODE_P2P,
				Instance: none, Src: vpp.IPAddress(end.here.local[family]), Dst: vpp.IPAddress(end.there.local[family])}})
		}
	}
}
