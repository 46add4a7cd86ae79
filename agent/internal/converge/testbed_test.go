package converge

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/gre"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"

	"longline.dev/agent/internal/freeze"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/pathwatch"
	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
	"longline.dev/agent/internal/vppsim"
)

// router is an agent's engine with a VPP that has four customer ports and a local address of each family.
type router struct {
	*Engine
	paths   *PathWatcher
	tracer  *Tracer
	t       *testing.T
	session *vpp.Session
	ports   []string
	restart func() error
	// forwards returns why frames of an access do not pass. It is nil if this needs real frames.
	forwards func(name string) error
	// pair creates a Linux CP pair of a port. It is nil if the stand-in supports none.
	pair   func(port string) error
	folder string
	api    string
	stats  string
}

var (
	locals  = map[int]netip.Addr{4: netip.MustParseAddr("10.255.0.1"), 6: netip.MustParseAddr("fd00:255::1")}
	remotes = map[int]netip.Addr{4: netip.MustParseAddr("10.255.0.2"), 6: netip.MustParseAddr("fd00:255::2")}
)

// onEveryVPP runs a test with vppsim and, if a VPP is installed, with a real VPP. There, loopbacks simulate
// the customers' ports: they support sub-interfaces and cross-connects like any Ethernet port.
func onEveryVPP(t *testing.T, test func(*testing.T, *router)) {
	t.Run("vppsim", func(t *testing.T) {
		sim, err := vppsim.Start(t.Context(), vppsim.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(sim.Stop)
		r := newRouter(t, sim.APISocket(), sim.StatsSocket())
		r.options.CLISocket = sim.CLISocket()
		r.restart, r.forwards = func() error { return sim.Restart() }, sim.Forwarding
		test(t, r)
	})
	t.Run("real VPP", func(t *testing.T) {
		r, _ := newRealRouter(t)
		test(t, r)
	})
}

// newRealRouter skips the test if no VPP is installed.
func newRealRouter(t *testing.T) (*router, *realvpp.VPP) {
	t.Helper()
	return newRealRouterWith(t)
}

// newRealRouterWith loads additional plugins.
func newRealRouterWith(t *testing.T, plugins ...string) (*router, *realvpp.VPP) {
	t.Helper()
	real := realvpp.StartOrSkip(t, realvpp.Options{
		Plugins: append([]string{"vxlan", "geneve", "gre", "ping", "policer", "linux_cp", "linux_cp_unittest"}, plugins...),
	})
	r := newRouter(t, real.APISocket(), real.StatsSocket())
	r.options.CLISocket = real.CLISocket()
	r.restart = func() error { return real.Restart(t.Context()) }
	r.pair = pairer(real)
	return r, real
}

// can reports whether this VPP has the messages of the capability.
func (r *router) can(capability observe.Capability) bool {
	r.t.Helper()
	return r.snapshot().Supported[capability]
}

// needs skips a test if a real VPP of an earlier release lacks the capability. Stand-ins support
// everything.
func (r *router) needs(t *testing.T, capability observe.Capability) {
	t.Helper()
	if !r.session.Info().Simulated() && !r.can(capability) {
		t.Skipf("SKIPPED ON THIS VPP: it lacks the messages of %s", capability)
	}
}

// greTunnel adds or deletes a GRE tunnel with the addresses and the key of t, and returns its index. An
// earlier VPP has no message with a key.
func (r *router) greTunnel(add bool, t intent.Tunnel) uint32 {
	r.t.Helper()
	local, remote := vpp.IPAddress(t.Local), vpp.IPAddress(t.Remote)
	if t.GREKey == 0 && !r.session.Has(&gre.GreTunnelAddDelV2{}) {
		return uint32(r.must(&gre.GreTunnelAddDel{IsAdd: add, Tunnel: gre.GreTunnel{
			Type: gre.GRE_API_TUNNEL_TYPE_TEB, Instance: noInstance, Src: local, Dst: remote,
		}}).(*gre.GreTunnelAddDelReply).SwIfIndex)
	}
	return uint32(r.must(&gre.GreTunnelAddDelV2{IsAdd: add, Tunnel: gre.GreTunnelV2{
		Type: gre.GRE_API_TUNNEL_TYPE_TEB, Instance: noInstance, Src: local, Dst: remote, Key: t.GREKey,
	}}).(*gre.GreTunnelAddDelV2Reply).SwIfIndex)
}

const noInstance = ^uint32(0)

var customerPorts = []string{"loop100", "loop101", "loop102", "loop103"}

// furnish creates the ports loop100..loop103 and loop0 with the local addresses.
func (r *router) furnish() {
	r.t.Helper()
	for _, instance := range []uint32{0, 100, 101, 102, 103} {
		port := r.portByHand(instance)
		if instance == 0 {
			r.must(&interfaces.SwInterfaceAddDelAddress{SwIfIndex: port, IsAdd: true,
				Prefix: ip_types.AddressWithPrefix{Address: vpp.IPAddress(locals[4]), Len: 32}})
			r.must(&interfaces.SwInterfaceAddDelAddress{SwIfIndex: port, IsAdd: true,
				Prefix: ip_types.AddressWithPrefix{Address: vpp.IPAddress(locals[6]), Len: 128}})
		}
	}
	r.ports = customerPorts
}

// portByHand creates a loopback that is up.
func (r *router) portByHand(instance uint32) interface_types.InterfaceIndex {
	r.t.Helper()
	made := r.must(&interfaces.CreateLoopbackInstance{IsSpecified: true, UserInstance: instance}).(*interfaces.CreateLoopbackInstanceReply)
	r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: made.SwIfIndex, Flags: interface_types.IF_STATUS_API_FLAG_ADMIN_UP})
	return made.SwIfIndex
}

// must sends a request as another client.
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

func newRouter(t *testing.T, api, stats string) *router {
	t.Helper()
	r := &router{t: t, folder: t.TempDir(), api: api, stats: stats}
	r.open()
	r.connect()
	r.furnish()
	return r
}

// open simulates a start of the agent on the same folder.
func (r *router) open() {
	r.t.Helper()
	store := intent.OpenStore(r.folder, "rhino")
	journal, err := ownership.OpenJournal(r.folder)
	if err != nil {
		r.t.Fatal(err)
	}
	upPaths, err := pathwatch.OpenUpPaths(r.folder)
	if err != nil {
		r.t.Fatal(err)
	}
	frozen, err := freeze.Open(r.folder, time.Now)
	if err != nil {
		r.t.Fatal(err)
	}
	session := r.session
	counters := statseg.NewReopeningSegment(r.stats)
	r.t.Cleanup(counters.Close)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	r.paths = NewPathWatcher(upPaths, journal, log, time.Now, false)
	r.Engine = New(store, journal, log, time.Now, Options{
		Frozen: frozen, Paths: r.paths, FullObservation: time.Hour, Adoption: true, TunnelCounters: counters.TunnelCounters,
	})
	r.tracer = r.Engine.Parts().Tracer
	if session != nil {
		r.Attach(session)
	}
}

func (r *router) connect() {
	r.t.Helper()
	dialer := vpp.Dialer{Socket: r.api, Timeout: realvpp.ReplyTimeout, BootMS: func(ctx context.Context) (int64, error) {
		return statseg.BootTime(ctx, r.stats)
	}}
	session, err := dialer.Dial(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(session.Close)
	r.session = session
	r.Attach(session)
}

// restartVPP leaves only the ports in VPP, and connects again without a converge.
func (r *router) restartVPP() {
	r.t.Helper()
	if err := r.restart(); err != nil {
		r.t.Fatal(err)
	}
	<-r.session.Done()
	r.connect()
	r.furnish()
}

func (r *router) snapshot() *observe.Snapshot {
	r.t.Helper()
	s, err := observe.Full(r.t.Context(), r.session, boot(r.session), r.ports...) // policers are read on all ports
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// put gives the engine the next generation.
func (r *router) put(present []intent.End, removed ...intent.Tombstone) *Outcome {
	r.t.Helper()
	outcome, err := r.Put(r.t.Context(), r.nextIntent(present, removed...), "")
	if err != nil {
		r.t.Fatal(err)
	}
	return outcome
}

// nextIntent returns an intent with the generation after the stored one.
func (r *router) nextIntent(present []intent.End, removed ...intent.Tombstone) *intent.Intent {
	r.t.Helper()
	generation := int64(1)
	if stored, _ := r.store.Current(); stored != nil {
		generation = stored.Generation + 1
	}
	in, err := intent.Decode((&intent.Intent{Router: "rhino", Generation: generation, Present: present, Removed: removed}).Document(), "rhino")
	if err != nil {
		r.t.Fatalf("the test's own intent: %+v", err)
	}
	return in
}

func (r *router) writes() uint64 { return r.Status().Statistics.Writes }

func (o *Outcome) mustAllBe(t *testing.T, status string) {
	t.Helper()
	if !o.Applied {
		t.Errorf("not applied")
	}
	for _, e := range o.Ends {
		if e.Status != status {
			t.Errorf("%s is %s, want %s: %+v", e.Key, e.Status, status, e.Reason)
		}
	}
}

func vllID(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

// vxlanEnd returns the simplest end: VLAN n+100 of a port over VXLAN with VNI n+1000.
func vxlanEnd(n int, port string) intent.End {
	return intent.End{
		Key: intent.Key{VLL: vllID(n), End: "a"}, Revision: 1, AdminUp: true, Frame: 1514,
		Access: intent.Access{Interface: port, Tagging: intent.Dot1q, Outer: uint16(100 + n), Exact: true},
		Tunnel: intent.Tunnel{Encapsulation: intent.VXLAN, Local: locals[4], Remote: remotes[4], VNI: uint32(1000 + n)},
	}
}

func tombstone(e intent.End) intent.Tombstone {
	return intent.Tombstone{Key: e.Key, Revision: e.Revision}
}
