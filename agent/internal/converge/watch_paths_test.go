package converge

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/bfd"
	"go.fd.io/govpp/binapi/interface_types"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/pathwatch"
	"longline.dev/agent/internal/vpp"
	"longline.dev/agent/internal/vppsim"
)

var watched = intent.Watch{IntervalMS: 300, Multiplier: 3}

const noInterface = ^interface_types.InterfaceIndex(0)

func pathOf(family int) intent.Path {
	return intent.Path{Local: locals[family], Remote: remotes[family]}
}

// putWatched is put with monitoring of paths.
func (r *router) putWatched(watch intent.Watch, present ...intent.End) *Outcome {
	r.t.Helper()
	generation := int64(1)
	if stored, _ := r.store.Current(); stored != nil {
		generation = stored.Generation + 1
	}
	wanted := &intent.Intent{Router: "rhino", Generation: generation, Present: present, Watch: watch}
	in, err := intent.Decode(wanted.Document(), "rhino")
	if err != nil {
		r.t.Fatalf("the test's own intent: %+v", err)
	}
	outcome, err := r.Put(r.t.Context(), in, "")
	if err != nil {
		r.t.Fatal(err)
	}
	return outcome
}

// sessions returns the multihop sessions in VPP.
func (r *router) sessions() map[intent.Path]pathwatch.Session {
	r.t.Helper()
	existing, err := pathwatch.Read(r.t.Context(), r.session)
	if err != nil {
		r.t.Fatal(err)
	}
	return existing
}

// mustWatch checks that VPP has exactly the sessions of these paths, with the wanted settings.
func (r *router) mustWatch(watch intent.Watch, paths ...intent.Path) {
	r.t.Helper()
	existing := r.sessions()
	us := uint32(watch.IntervalMS * 1000)
	for _, path := range paths {
		s, is := existing[path]
		if !is || s.Interval != [2]uint32{us, us} || int(s.Multiplier) != watch.Multiplier {
			r.t.Errorf("%s: %v %+v", path, is, s)
		}
	}
	if len(existing) != len(paths) {
		r.t.Errorf("%d sessions, want %d", len(existing), len(paths))
	}
}

func (r *router) byHand(path intent.Path, interval uint32) *bfd.BfdUDPAdd {
	return &bfd.BfdUDPAdd{
		SwIfIndex: noInterface, LocalAddr: vpp.IPAddress(path.Local), PeerAddr: vpp.IPAddress(path.Remote),
		DesiredMinTx: interval, RequiredMinRx: interval, DetectMult: 7,
	}
}

// endsOfAllTransports returns lines of all six transports between the same two routers.
func endsOfAllTransports(r *router) (ends []intent.End) {
	n := 0
	for _, family := range []int{4, 6} {
		for _, encapsulation := range []intent.Encapsulation{intent.VXLAN, intent.GENEVE, intent.GRE} {
			n++
			end := vxlanEnd(n, r.ports[0])
			end.Tunnel = intent.Tunnel{Encapsulation: encapsulation, Local: locals[family], Remote: remotes[family], VNI: uint32(n)}
			if encapsulation == intent.GRE {
				end.Tunnel.VNI = 0
			}
			ends = append(ends, end)
		}
	}
	return ends
}

func TestLinesOfAllTransportsShareOneSessionPerPath(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.needs(t, observe.CanWatch)
		ends := endsOfAllTransports(r)
		ends[2].Testing = true
		r.putWatched(watched, ends...)
		r.mustWatch(watched, pathOf(4), pathOf(6))
		r.putWatched(watched, ends[5])
		r.mustWatch(watched, pathOf(6))
		r.putWatched(watched)
		r.mustWatch(watched)
		r.putWatched(watched, ends[0])
		r.putWatched(intent.Watch{}, ends[0])
		r.mustWatch(watched)
	})
}

func TestOneSessionPerPeerRegardlessOfTheNumberOfLines(t *testing.T) {
	in := &intent.Intent{Watch: watched}
	for n := range 1000 {
		end := vxlanEnd(n, "loop0")
		in.Present = append(in.Present, end)
	}
	if got := len(pathwatch.Of(in).Paths); got != 1 {
		t.Errorf("%d sessions for 1,000 lines", got)
	}
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.needs(t, observe.CanWatch)
		var ends []intent.End
		for n := range 100 {
			end := vxlanEnd(n, r.ports[0])
			end.Tunnel.Remote = netip.AddrFrom4([4]byte{10, 254, 0, byte(n + 1)})
			ends = append(ends, end)
		}
		r.putWatched(watched, ends...)
		if got := len(r.sessions()); got != 100 {
			t.Errorf("%d sessions", got)
		}
	})
}

func TestSessionsHaveTheTimersOfTheIntent(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.needs(t, observe.CanWatch)
		end, slower := vxlanEnd(1, r.ports[0]), intent.Watch{IntervalMS: 1000, Multiplier: 5}
		r.putWatched(watched, end)
		r.putWatched(slower, end)
		r.mustWatch(slower, pathOf(4))
	})
}

func TestForeignSessionIsReadAndNotChanged(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.needs(t, observe.CanWatch)
		r.must(&bfd.BfdUDPEnableMultihop{})
		r.must(r.byHand(pathOf(4), 50_000))
		foreign := r.sessions()[pathOf(4)]
		r.putWatched(watched, vxlanEnd(1, r.ports[0]))
		paths := r.paths.Paths()
		if len(paths) != 1 || !paths[0].Foreign || paths[0].State != pathwatch.Unheard {
			t.Errorf("%+v", paths)
		}
		r.CheckDrift(t.Context())
		r.putWatched(watched)
		if now := r.sessions()[pathOf(4)]; now != foreign {
			t.Errorf("it was %+v and is %+v", foreign, now)
		}
	})
}

// spoil changes the agent's session over IPv4 and deletes the one over IPv6.
func (r *router) spoil() {
	r.must(&bfd.BfdUDPMod{
		SwIfIndex: noInterface, LocalAddr: vpp.IPAddress(locals[4]), PeerAddr: vpp.IPAddress(remotes[4]),
		DesiredMinTx: 900_000, RequiredMinRx: 900_000, DetectMult: 9,
	})
	r.must(&bfd.BfdUDPSessionSetFlags{SwIfIndex: noInterface, LocalAddr: vpp.IPAddress(locals[4]), PeerAddr: vpp.IPAddress(remotes[4])})
	r.must(&bfd.BfdUDPDel{SwIfIndex: noInterface, LocalAddr: vpp.IPAddress(locals[6]), PeerAddr: vpp.IPAddress(remotes[6])})
}

func TestChangedSessionIsRepairedOrOnlyReportedUntilTheNextIntent(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.needs(t, observe.CanWatch)
		ends := endsOfAllTransports(r)
		r.putWatched(watched, ends...)
		r.spoil()
		r.CheckDrift(t.Context())
		r.mustWatch(watched, pathOf(4), pathOf(6))
		if s := r.sessions()[pathOf(4)]; s.State == bfd.BFD_STATE_API_ADMIN_DOWN {
			t.Error("it is still shut")
		}
		r.options.Repair = ReportOnly
		r.spoil()
		r.CheckDrift(t.Context())
		if existing := r.sessions(); len(existing) != 1 || existing[pathOf(4)].Multiplier != 9 {
			t.Errorf("under ReportOnly: %+v", existing)
		}
		stored, _ := r.store.Current()
		if _, err := r.Put(t.Context(), stored, ""); err != nil {
			t.Fatal(err)
		}
		r.mustWatch(watched, pathOf(4), pathOf(6))
	})
}

func TestSessionsBelongToTheAgentAfterItsRestart(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.needs(t, observe.CanWatch)
		r.putWatched(watched, vxlanEnd(1, r.ports[0]))
		r.open()
		r.CheckDrift(t.Context())
		if paths := r.paths.Paths(); len(paths) != 1 || paths[0].Foreign {
			t.Errorf("%+v", paths)
		}
		r.putWatched(watched)
		r.mustWatch(watched)
	})
}

func TestSessionsStayWithoutAnIntent(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.needs(t, observe.CanWatch)
		r.putWatched(watched, vxlanEnd(1, r.ports[0]))
		intents, err := filepath.Glob(filepath.Join(r.folder, "intent*"))
		if err != nil || len(intents) == 0 {
			t.Fatal(intents, err)
		}
		for _, path := range intents {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		r.open()
		if stored, _ := r.store.Current(); stored != nil {
			t.Fatal("it still has an intent")
		}
		r.CheckDrift(t.Context())
		r.mustWatch(watched, pathOf(4))
	})
}

func TestSessionsAreCreatedAgainAfterARestartOfVPP(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.needs(t, observe.CanWatch)
		r.putWatched(watched, vxlanEnd(1, r.ports[0]))
		r.restartVPP()
		if paths := r.paths.Paths(); len(paths) != 0 {
			t.Errorf("before the first reading: %+v", paths)
		}
		r.Converge(t.Context())
		r.mustWatch(watched, pathOf(4))
	})
}

func TestVPPWithoutMultihopBFDGetsNoSessions(t *testing.T) {
	sim, err := vppsim.Start(t.Context(), vppsim.Config{WithoutMessages: []string{"bfd_udp_enable_multihop"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Stop)
	r := newRouter(t, sim.APISocket(), sim.StatsSocket())
	r.putWatched(watched, vxlanEnd(1, r.ports[0])).mustAllBe(t, "verified")
	if paths := r.paths.Paths(); len(paths) != 0 {
		t.Errorf("%+v", paths)
	}
	r.mustWatch(watched)
}

func TestNeverWatchDeletesTheSessions(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.needs(t, observe.CanWatch)
		r.putWatched(watched, vxlanEnd(1, r.ports[0]))
		r.paths.never = true
		r.CheckDrift(t.Context())
		r.mustWatch(watched)
	})
}

func TestConvergeWithTheSamePathsSendsNoBFDMessages(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.needs(t, observe.CanWatch)
		one, two := vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[0])
		r.putWatched(watched, one)
		r.spoilQuietly()
		r.putWatched(watched, one, two)
		if s := r.sessions()[pathOf(4)]; s.Multiplier != 9 {
			t.Error("a converge of another line read the session")
		}
	})
}

func (r *router) spoilQuietly() {
	r.must(&bfd.BfdUDPMod{
		SwIfIndex: noInterface, LocalAddr: vpp.IPAddress(locals[4]), PeerAddr: vpp.IPAddress(remotes[4]),
		DesiredMinTx: 900_000, RequiredMinRx: 900_000, DetectMult: 9,
	})
}

func TestPathEventsAreAppliedDuringAConverge(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.needs(t, observe.CanWatch)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go r.paths.follow(ctx, r.session.PathEvents())
		r.must(&bfd.BfdUDPEnableMultihop{})
		r.must(r.byHand(pathOf(4), 50_000))
		r.putWatched(watched, vxlanEnd(1, r.ports[0]))
		<-r.paths.PathsChanged()
		r.busy.Lock() // like a converge
		defer r.busy.Unlock()
		r.must(&bfd.BfdUDPSessionSetFlags{SwIfIndex: noInterface, LocalAddr: vpp.IPAddress(locals[4]), PeerAddr: vpp.IPAddress(remotes[4])})
		select {
		case <-r.paths.PathsChanged():
		case <-time.After(10 * time.Second):
			t.Fatal("no event")
		}
		if !slices.ContainsFunc(r.paths.Paths(), func(w pathwatch.Watched) bool { return w.State == pathwatch.Shut }) {
			t.Errorf("%+v", r.paths.Paths())
		}
	})
}
