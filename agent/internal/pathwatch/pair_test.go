package pathwatch

import (
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/bfd"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/vpp"
	"longline.dev/agent/internal/vppsim"
)

const patienceOfTests = 30 * time.Second

// router is one of two VPPs. Its link to the other one can be cut.
type router struct {
	t       *testing.T
	session *vpp.Session
	n       int
	cut     func(down bool)
}

func (r *router) path(family int) intent.Path {
	local, remote := [2]string{"10.255.0.%d", "fd00:255::%d"}[family/2-2], r.n
	return intent.Path{Local: netip.MustParseAddr(fmt.Sprintf(local, remote)), Remote: netip.MustParseAddr(fmt.Sprintf(local, 3-remote))}
}

func (r *router) paths() []intent.Path { return []intent.Path{r.path(4), r.path(6)} }

// onEveryPair runs a test on two stand-ins and, if a real VPP is installed, on two real VPPs joined by
// memif.
func onEveryPair(t *testing.T, test func(t *testing.T, a, z *router)) {
	t.Run("vppsim", func(t *testing.T) {
		underlay := t.TempDir()
		test(t, newSimulated(t, underlay, 1), newSimulated(t, underlay, 2))
	})
	t.Run("real VPP", func(t *testing.T) {
		pair := realvpp.StartPairOrSkip(t, realvpp.Options{Plugins: []string{"memif"}})
		a, z := newReal(t, pair[0], 1), newReal(t, pair[1], 2)
		if !Supported(a.session.Has) {
			t.Skip("SKIPPED ON THIS VPP: it has no multihop BFD")
		}
		test(t, a, z)
	})
}

func newSimulated(t *testing.T, underlay string, n int) *router {
	t.Helper()
	var links atomic.Pointer[vppsim.Links]
	links.Store(&vppsim.Links{})
	r := &router{t: t, n: n, cut: func(down bool) { links.Store(&vppsim.Links{Down: down}) }}
	own := vppsim.Interface{Name: "loop0"}
	config := vppsim.Config{Underlay: underlay, Reload: func() (vppsim.Links, error) { return *links.Load(), nil }}
	for _, path := range r.paths() {
		own.Addresses = append(own.Addresses, netip.PrefixFrom(path.Local, path.Local.BitLen()))
		config.Routes = append(config.Routes, vppsim.Route{Prefix: netip.PrefixFrom(path.Remote, path.Remote.BitLen())})
	}
	config.Interfaces = []vppsim.Interface{own}
	sim, err := vppsim.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Stop)
	r.dial(sim.APISocket())
	return r
}

func newReal(t *testing.T, real *realvpp.VPP, n int) *router {
	t.Helper()
	r := &router{t: t, n: n, cut: func(down bool) {
		state := map[bool]string{false: "up", true: "down"}[down]
		if _, err := real.CLI("set interface state memif1/0 " + state); err != nil {
			t.Error(err)
		}
	}}
	r.dial(real.APISocket())
	return r
}

func (r *router) dial(socket string) {
	r.t.Helper()
	session, err := vpp.Dialer{Socket: socket, Timeout: realvpp.ReplyTimeout}.Dial(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(session.Close)
	r.session = session
}

// watch applies the wanted sessions as the owner of all existing sessions.
func (r *router) watch(wanted Wanted) {
	r.t.Helper()
	existing, err := Read(r.t.Context(), r.session)
	if err != nil {
		r.t.Fatal(err)
	}
	ours := make(map[intent.Path]bool)
	for path := range existing {
		ours[path] = true
	}
	refused, err := Run(r.t.Context(), r.session, Plan(wanted, existing, ours))
	if err != nil || len(refused) > 0 {
		r.t.Fatal(err, refused)
	}
}

// await waits until events report that state for both paths.
func (r *router) await(want bfd.BfdState) {
	r.t.Helper()
	missing := map[intent.Path]bool{r.path(4): true, r.path(6): true}
	for deadline := time.After(patienceOfTests); len(missing) > 0; {
		select {
		case event := <-r.session.PathEvents():
			if path, state, multihop := EventOf(event); multihop && state == want {
				delete(missing, path)
			}
		case <-deadline:
			r.t.Fatalf("router %d: %v are not %v", r.n, missing, want)
		}
	}
}

var often = intent.Watch{IntervalMS: 100, Multiplier: 3}

func TestBothRoutersReportFailureAndRecoveryOfThePath(t *testing.T) {
	onEveryPair(t, func(t *testing.T, a, z *router) {
		both := []*router{a, z}
		for _, r := range both {
			r.watch(Wanted{Paths: r.paths(), Watch: often})
		}
		for _, r := range both {
			r.await(bfd.BFD_STATE_API_UP)
		}
		for _, cutter := range both {
			cutter.cut(true)
			for _, r := range both {
				r.await(bfd.BFD_STATE_API_DOWN)
			}
			cutter.cut(false)
			for _, r := range both {
				r.await(bfd.BFD_STATE_API_UP)
			}
		}
		z.watch(Wanted{})
		a.await(bfd.BFD_STATE_API_DOWN)
		if left, err := Read(t.Context(), z.session); err != nil || len(left) != 0 {
			t.Error(left, err)
		}
	})
}

func TestPlanRestoresChangedAndDeletedSessions(t *testing.T) {
	onEveryPair(t, func(t *testing.T, a, _ *router) {
		wanted := Wanted{Paths: a.paths(), Watch: often}
		a.watch(wanted)
		by := intent.Watch{IntervalMS: 1000, Multiplier: 9}
		hand := []Op{{Path: a.path(4), Request: modification(a.path(4), by)}, {Path: a.path(6), Request: deletion(a.path(6))}}
		if refused, err := Run(t.Context(), a.session, hand); err != nil || len(refused) > 0 {
			t.Fatal(refused, err)
		}
		a.watch(wanted)
		existing, err := Read(t.Context(), a.session)
		if err != nil {
			t.Fatal(err)
		}
		for path, session := range existing {
			if !session.matches(often) {
				t.Errorf("%s: %+v", path, session)
			}
		}
		if got := len(existing); got != 2 {
			t.Errorf("%d sessions", got)
		}
		if again := Plan(wanted, existing, map[intent.Path]bool{a.path(4): true, a.path(6): true}); len(again) != 0 {
			t.Errorf("again: %v", again)
		}
		if foreign := Plan(Wanted{Watch: often}, existing, nil); len(foreign) != 0 {
			t.Errorf("foreign sessions: %v", foreign)
		}
	})
}
