package report

import (
	"context"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
	"longline.dev/agent/internal/vppsim"
)

// lookups is a session that counts the routes that it looks up.
type lookups struct {
	converge.Session
	count atomic.Int64
}

func (s *lookups) Calls(ctx context.Context, requests []api.Message) ([]api.Message, error) {
	for _, request := range requests {
		if _, is := request.(*ip.IPRouteLookup); is {
			s.count.Add(1)
		}
	}
	return s.Session.Calls(ctx, requests)
}

func newEngine(store *intent.Store, journal *ownership.JournalFile, now func() time.Time) converge.Parts {
	return converge.New(store, journal, quiet, now, converge.Options{}).Parts()
}

// eventful is an engine whose paths and interfaces change when a test says so.
type eventful struct {
	converge.Parts
	paths, changes chan struct{}
}

func (e *eventful) PathsChanged() <-chan struct{} { return e.paths }
func (e *eventful) Changed() <-chan struct{}      { return e.changes }

// onEveryVPP runs a test with the sockets of vppsim and, if one is installed, of a real VPP.
func onEveryVPP(t *testing.T, test func(t *testing.T, api, stats string)) {
	t.Run("vppsim", func(t *testing.T) {
		sim, err := vppsim.Start(t.Context(), vppsim.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(sim.Stop)
		test(t, sim.APISocket(), sim.StatsSocket())
	})
	t.Run("real VPP", func(t *testing.T) {
		real := realvpp.StartOrSkip(t, realvpp.Options{Plugins: []string{"vxlan"}})
		test(t, real.APISocket(), real.StatsSocket())
	})
}

// TestABFDEventLooksUpNoRoute: VPP stops its workers for each route lookup, and the failure of one far
// router affects many paths.
func TestABFDEventLooksUpNoRoute(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, api, stats string) {
		session, err := vpp.Dialer{Socket: api, Timeout: realvpp.ReplyTimeout, BootMS: func(ctx context.Context) (int64, error) {
			return statseg.BootTime(ctx, stats)
		}}.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(session.Close)
		journal, err := ownership.OpenJournal(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		engine := &eventful{newEngine(intent.OpenStore(t.TempDir(), "rhino"), journal, time.Now), make(chan struct{}), make(chan struct{})}
		counted := &lookups{Session: session}
		engine.Attach(counted)
		in := &intent.Intent{Router: "rhino", Generation: 1}
		for n := range 100 {
			in.Present = append(in.Present, intent.End{
				Key: intent.Key{VLL: alice.Key.VLL[:34] + string([]byte{byte('0' + n/10), byte('0' + n%10)}), End: "a"}, Revision: 1, Frame: 1514,
				Access: intent.Access{Interface: "port0", Tagging: intent.Dot1q, Outer: uint16(100 + n), Exact: true},
				Tunnel: intent.Tunnel{Encapsulation: intent.VXLAN, VNI: uint32(1000 + n),
					Local: netip.MustParseAddr("10.255.0.1"), Remote: netip.AddrFrom4([4]byte{10, 255, 1, byte(n)})},
			})
		}
		if _, err := engine.Put(t.Context(), in, ""); err != nil {
			t.Fatal(err)
		}
		var passed atomic.Int64 // seconds
		now := func() time.Time { return time.Unix(1_800_000_000+passed.Load(), 0) }
		r := New(Options{Engine: engine, StatsSocket: stats, Interval: time.Hour, Log: quiet, Now: now})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); r.Run(ctx) }()
		t.Cleanup(func() { stop(); <-ended })
		since := func(events chan struct{}, times int) int64 {
			before := counted.count.Load()
			for range times {
				events <- struct{}{}
			}
			return counted.count.Load() - before
		}

		// An event is accepted only after the report of the previous one, so the second event shows the
		// cost of the first.
		if all := since(engine.paths, 2); all != 100 {
			t.Errorf("the first report looks up %d routes, want 100", all)
		}
		if more := since(engine.paths, 10); more != 0 {
			t.Errorf("ten BFD events look up %d routes", more)
		}
		if more := since(engine.changes, 5); more != 0 {
			t.Errorf("five changes within a second look up %d routes", more)
		}
		r.setWatchedRoutes(0, []string{"10.255.9.9"})
		if more := since(engine.paths, 2); more != 1 {
			t.Errorf("with one further watched route %d are looked up", more)
		}
		passed.Add(2)
		if all := since(engine.changes, 2); all != 101 {
			t.Errorf("a change after two seconds looks up %d routes, want all 101", all)
		}
		other := &lookups{Session: session}
		engine.Attach(other)
		since(engine.paths, 2)
		if all := other.count.Load(); all != 101 {
			t.Errorf("the first report over a new connection looks up %d routes, want all 101", all)
		}
	})
}
