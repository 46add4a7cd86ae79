package report

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	interfaces "go.fd.io/govpp/binapi/interface"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/packettrace"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
	"longline.dev/agent/internal/vppsim"
)

// wire is the traffic that arrives at a router: frames with alice's VLAN and with others on her port, and
// frames of others on other ports.
type wire struct {
	t      *testing.T
	watch  lostVLANs
	folder string
	at     time.Time
	access Access

	in, drops, neighbour uint64
	unknown              *uint64
	// lost is true while VPP drops her frames. hopeless: a rebuild does not change that.
	lost, hopeless bool
	// policed is the number of frames per second that the policer of another line on her port refuses.
	policed uint64
	// away is the number of readings during which her sub-interface does not exist because it is being
	// rebuilt.
	away int
	// busy is the reason why the tracer cannot be used, nil for none.
	busy error

	searches, rebuilds             int
	rebuilt, restored, notRestored []string
}

func newWire(t *testing.T) *wire {
	access := alice
	access.Port, access.Made, access.VLAN = port, 1, packettrace.VLAN{Port: port.Name, Tagging: intent.Dot1q, Outer: 100}
	w := &wire{t: t, at: start, access: access, unknown: new(uint64), folder: t.TempDir()}
	w.restartAgent()
	return w
}

// restartAgent keeps the files on disk.
func (w *wire) restartAgent() {
	w.t.Helper()
	kept, aside := openRebuilds(w.folder, quiet)
	if aside != nil {
		w.t.Fatal(aside)
	}
	w.watch = lostVLANs{rebuilds: kept}
	w.access.Made = 0
}

// pass simulates a period with a reading every ten seconds. hers and others are frames per second.
func (w *wire) pass(long time.Duration, hers, others uint64) {
	w.t.Helper()
	for end := w.at.Add(long); w.at.Before(end); {
		w.at = w.at.Add(10 * time.Second)
		dropped := 10 * others
		if w.lost {
			dropped += 10 * hers
		} else {
			w.in += 10 * hers
		}
		w.drops += dropped + 10*w.policed
		w.neighbour += 10 * w.policed
		var unknown *uint64
		if w.unknown != nil {
			*w.unknown += dropped
			unknown = known(*w.unknown)
		}
		name := "cust0.100"
		if w.rebuilds > 0 && w.away > 0 {
			name = "local1"
			w.away--
		}
		reading := statseg.Reading{
			BootMS: 1000, Names: []string{"local0", name, "bb0", "bb0.200"},
			Rx: []statseg.Count{{}, {Packets: w.in}, {}, {}}, Tx: make([]statseg.Count, 4),
			Losses: statseg.InterfaceLosses{Drops: []uint64{0, 0, w.drops, w.neighbour}},
			Errors: statseg.RouterErrors{UnknownVLAN: unknown},
		}
		view := of(w.access)
		view.Subs = map[uint32][]Port{port.Index: {{3, "bb0.200"}}}
		suspects, events := w.watch.take(w.at, reading, view)
		w.note(events)
		if len(suspects) == 0 {
			continue
		}
		w.searches++
		found := map[packettrace.VLAN]int{}
		if w.lost && hers > 0 && w.busy == nil {
			found[w.access.VLAN] = 7
		}
		for _, access := range w.watch.judge(w.at, suspects, found, w.busy) {
			w.rebuild(access, false)
		}
	}
}

func (w *wire) note(events vlanEvents) {
	for to, from := range map[*[]string]map[intent.Key]string{&w.rebuilt: events.rebuilt, &w.restored: events.restored, &w.notRestored: events.notRestored} {
		for _, text := range from {
			*to = append(*to, text)
		}
	}
}

func (w *wire) rebuild(access Access, requested bool) {
	w.t.Helper()
	if access.Index != 1 || access.Name != "cust0.100" {
		w.t.Errorf("to be rebuilt: %+v", access)
	}
	if err := w.watch.begin(w.at, access, requested); err != nil {
		w.t.Fatal(err)
	}
	w.rebuilds++
	w.access.Made, w.in = w.access.Made+100, 0
	w.lost = w.lost && w.hopeless
}

func (w *wire) state() VLANLossState { return w.watch.losses()[alice.Key].State }

func TestASubInterfaceIsRebuiltOnlyIfATraceShowsThatVPPDropsItsFrames(t *testing.T) {
	for name, c := range map[string]struct {
		happens            func(w *wire)
		rebuilds, restored int
		state              VLANLossState
	}{
		"nothing happens": {func(w *wire) { w.pass(time.Hour, 5, 0) }, 0, 0, ""},
		"it is lost": {func(w *wire) {
			w.pass(time.Minute, 5, 0)
			w.lost = true
			w.pass(2*time.Minute, 5, 0)
		}, 1, 1, ""},
		"its reading is missing while it is rebuilt": {func(w *wire) {
			w.pass(time.Minute, 5, 0)
			w.lost, w.away = true, 1
			w.pass(2*time.Minute, 5, 0)
		}, 1, 1, ""},
		"it is lost in the first interval in which frames arrive": {func(w *wire) {
			w.pass(20*time.Second, 2, 3)
			w.lost = true
			w.pass(2*time.Minute, 5, 0)
		}, 1, 1, ""},
		"it is lost while many frames of other VLANs arrive": {func(w *wire) {
			w.pass(time.Minute, 5, 1000)
			w.lost = true
			w.pass(2*time.Minute, 5, 1000)
		}, 1, 1, ""},
		"it is lost for a moment": {func(w *wire) {
			w.pass(time.Minute, 5, 0)
			w.lost = true
			w.pass(20*time.Second, 5, 0)
			w.lost = false
			w.pass(time.Minute, 5, 0)
		}, 0, 0, ""},
		"the customer stops": {func(w *wire) {
			w.pass(time.Minute, 5, 0)
			w.pass(time.Hour, 0, 0)
		}, 0, 0, ""},
		"the customer never began": {func(w *wire) { w.pass(time.Hour, 0, 5) }, 0, 0, ""},
		"the customer is quiet while other VLANs arrive at the port": {func(w *wire) {
			w.pass(time.Minute, 5, 3)
			w.pass(time.Hour, 0, 3)
		}, 0, 0, ""},
		"the customer is quiet while a neighbour is policed and another port drops unknown VLANs": {func(w *wire) {
			w.policed = 50
			w.pass(time.Minute, 5, 0)
			for range 60 {
				*w.unknown += 3
				w.pass(time.Minute, 0, 0)
			}
		}, 0, 0, ""},
		"the customer goes on after an hour": {func(w *wire) {
			w.pass(time.Minute, 5, 3)
			w.pass(time.Hour, 0, 3)
			w.pass(time.Minute, 5, 3)
		}, 0, 0, ""},
		"the customer sends another VLAN": {func(w *wire) {
			w.pass(time.Minute, 5, 0)
			w.pass(time.Hour, 0, 5)
		}, 0, 0, ""},
		"it is lost again and again": {func(w *wire) {
			for range 4 {
				w.pass(15*time.Minute, 5, 0)
				w.lost = true
				w.pass(time.Minute, 5, 0)
			}
		}, 4, 4, ""},
		"the rebuild restores nothing": {func(w *wire) {
			w.pass(time.Minute, 5, 0)
			w.lost, w.hopeless = true, true
			w.pass(6*time.Hour, 5, 0)
		}, 1, 0, VLANNotRestored},
		"the rebuild restores nothing and the agent restarts": {func(w *wire) {
			w.pass(time.Minute, 5, 0)
			w.lost, w.hopeless = true, true
			w.pass(time.Minute, 5, 0)
			w.restartAgent()
			w.pass(6*time.Hour, 5, 0)
		}, 1, 0, VLANNotRestored},
		"the rebuild restores nothing, frames arrive later, and it is lost again": {func(w *wire) {
			w.pass(time.Minute, 5, 0)
			w.lost, w.hopeless = true, true
			w.pass(time.Hour, 5, 0)
			w.lost = false
			w.pass(time.Hour, 5, 0)
			w.lost = true
			w.pass(time.Hour, 5, 0)
		}, 1, 0, VLANNotRestored},
		"it restores nothing, frames arrive later, and the customer is quiet": {func(w *wire) {
			w.pass(time.Minute, 5, 0)
			w.lost, w.hopeless = true, true
			w.pass(time.Hour, 5, 0)
			w.lost = false
			w.pass(time.Hour, 5, 0)
			w.pass(time.Hour, 0, 5)
		}, 1, 0, ""},
		"it restores nothing and an operator requests another one": {func(w *wire) {
			w.pass(time.Minute, 5, 0)
			w.lost, w.hopeless = true, true
			w.pass(time.Hour, 5, 0)
			w.hopeless = false
			w.rebuild(w.access, true)
			w.pass(time.Hour, 5, 0)
		}, 2, 0, ""},
		"the tracer is in use": {func(w *wire) {
			w.pass(time.Minute, 5, 0)
			w.lost, w.busy = true, &packettrace.InUseError{Use: packettrace.HasPackets}
			w.pass(time.Hour, 5, 0)
		}, 0, 0, VLANNotExamined},
		"VPP does not count unknown VLANs": {func(w *wire) {
			w.unknown = nil
			w.pass(time.Minute, 5, 0)
			w.lost = true
			w.pass(time.Hour, 5, 0)
		}, 0, 0, ""},
		"a whole port": {func(w *wire) {
			w.access.Port = Port{}
			w.pass(time.Minute, 5, 0)
			w.lost = true
			w.pass(time.Hour, 5, 0)
		}, 0, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			c.happens(w)
			if w.rebuilds != c.rebuilds || len(w.rebuilt) != c.rebuilds || len(w.restored) != c.restored || w.state() != c.state {
				t.Errorf("%d rebuilds, events: rebuilt %q, restored %q, not restored %q; state %q; want %d, %d and %q",
					w.rebuilds, w.rebuilt, w.restored, w.notRestored, w.state(), c.rebuilds, c.restored, c.state)
			}
			if failed := strings.Contains(name, "restores nothing"); failed != (len(w.notRestored) == 1) || len(w.notRestored) > 1 {
				t.Errorf("events: not restored %q", w.notRestored)
			}
		})
	}
}

// TestSearchesForAQuietLineBecomeLessFrequent: the tracer has to remain available to operators.
func TestSearchesForAQuietLineBecomeLessFrequent(t *testing.T) {
	w := newWire(t)
	w.pass(time.Minute, 5, 3)
	w.pass(time.Hour, 0, 3)
	if w.searches < 5 || w.searches > 10 { // after 1, 2, 4 and 8 minutes, then every 10
		t.Errorf("%d searches in an hour", w.searches)
	}
}

func TestTheEventOfARebuildNamesItsEvidence(t *testing.T) {
	w := newWire(t)
	w.pass(time.Minute, 5, 0)
	w.lost = true
	w.pass(2*time.Minute, 5, 0)
	want := []string{"cust0.100 was deleted and created again: VPP's tracer shows 7 frames with VLAN 100 that bb0 dropped as frames of an unknown VLAN, " +
		"although cust0.100 takes them"}
	if !slices.Equal(w.rebuilt, want) {
		t.Errorf("got %q, want %q", w.rebuilt, want)
	}
}

func TestTheRebuildRecordOfARemovedEndIsDeleted(t *testing.T) {
	w := newWire(t)
	w.pass(time.Minute, 5, 0)
	w.lost, w.hopeless = true, true
	w.pass(time.Hour, 5, 0)
	w.watch.rebuilds.keepOnly([]intent.End{{Key: alice.Key}})
	if w.watch.rebuilds.of(alice.Key) == nil {
		t.Fatal("it is forgotten although the end is wanted")
	}
	w.watch.rebuilds.keepOnly(nil)
	w.restartAgent()
	if r := w.watch.rebuilds.of(alice.Key); r != nil {
		t.Errorf("kept: %+v", r)
	}
}

// TestWithoutTheDiskNothingIsRebuilt: the next start would not know of the rebuild and would repeat it.
func TestWithoutTheDiskNothingIsRebuilt(t *testing.T) {
	w := newWire(t)
	w.watch.rebuilds.path = filepath.Join(w.folder, "missing", "rebuilds.json")
	if err := w.watch.begin(w.at, w.access, false); !errors.Is(err, os.ErrNotExist) || w.watch.rebuilds.of(alice.Key) != nil {
		t.Errorf("got %v", err)
	}
}

// TestAStartClearsTheTracerThatAKilledAgentUsed: only in the run of VPP in which the agent used it.
func TestAStartClearsTheTracerThatAKilledAgentUsed(t *testing.T) {
	for name, c := range map[string]struct {
		boot    int64
		cleared int
	}{"the same VPP": {1000, 1}, "another one": {2000, 0}} {
		t.Run(name, func(t *testing.T) {
			folder, engine := t.TempDir(), &dyingVPP{}
			if err := os.WriteFile(filepath.Join(folder, "rebuilds.json"), []byte(`{"ends": [], "tracing_boot_ms": 1000}`), 0o600); err != nil {
				t.Fatal(err)
			}
			r := New(Options{Engine: engine, Folder: folder, Log: quiet, Now: time.Now})
			state := &converge.ObservedState{Snapshot: &observe.Snapshot{Boot: ownership.Boot{MS: c.boot}}}
			for range 2 {
				r.tidyUp(t.Context(), state, converge.Status{})
			}
			if engine.cleared != c.cleared {
				t.Errorf("the tracer was cleared %d times, want %d", engine.cleared, c.cleared)
			}
			if kept, aside := openRebuilds(folder, quiet); aside != nil || kept.kept.TracingBootMS != 0 {
				t.Errorf("on disk: %+v, %+v", kept.kept, aside)
			}
		})
	}
}

// TestOnlyASearchThatUsesTheTracerIsRecordedAndLogged: a start after a recorded search clears the tracer,
// which must not delete an operator's packets.
func TestOnlyASearchThatUsesTheTracerIsRecordedAndLogged(t *testing.T) {
	inUse := &packettrace.InUseError{Use: packettrace.HasPackets}
	for name, c := range map[string]struct {
		engine         dyingVPP
		during, after  int64
		err            error
		logged, noDisk bool
	}{
		"it finds the tracer in use":    {engine: dyingVPP{inUse: inUse}, err: inUse},
		"another trace is running":      {engine: dyingVPP{inUse: converge.ErrTracing}, err: converge.ErrTracing},
		"it uses the tracer":            {during: 1000, logged: true},
		"it cannot clear the tracer":    {engine: dyingVPP{left: &packettrace.LeftError{Why: vpp.ErrTimeout}}, during: 1000, after: 1000, err: vpp.ErrTimeout, logged: true},
		"the disk does not accept data": {noDisk: true, err: os.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			folder, engine := t.TempDir(), &c.engine
			r := New(Options{Engine: engine, Folder: folder, Log: slog.New(slog.NewTextHandler(&log, nil)), Now: time.Now})
			if c.noDisk {
				r.vlans.rebuilds.path = filepath.Join(folder, "missing", "rebuilds.json")
			}
			onDisk := func() int64 {
				kept, aside := openRebuilds(folder, quiet)
				if aside != nil {
					t.Fatal(aside)
				}
				return kept.kept.TracingBootMS
			}
			var during int64
			engine.searching = func() { during = onDisk() }
			if _, err := r.unknownVLANs(t.Context(), 1000, nil); !errors.Is(err, c.err) {
				t.Errorf("got %v", err)
			}
			if after := onDisk(); during != c.during || after != c.after {
				t.Errorf("on disk: %d during the search and %d after it", during, after)
			}
			if _, err := os.Stat(filepath.Join(folder, "rebuilds.json")); errors.Is(err, os.ErrNotExist) != (c.during == 0) {
				t.Errorf("the file: %v", err)
			}
			if logged := strings.Contains(log.String(), "VPP's tracer is used"); logged != c.logged {
				t.Errorf("the log: %s", log.String())
			}
		})
	}
}

// TestTheAgentRepairsALineThatARefusedDuplicateStopped combines frames, counters, the tracer, the engine
// and the events.
func TestTheAgentRepairsALineThatARefusedDuplicateStopped(t *testing.T) {
	var later atomic.Int64 // nanoseconds; the stand-in reads the time too
	clock := func() time.Time { return start.Add(time.Duration(later.Load())) }
	sim, err := vppsim.Start(t.Context(), vppsim.Config{
		Clock: clock, Traffic: vppsim.Traffic{RateBps: 8_000_000},
		Interfaces: []vppsim.Interface{{Name: "cust0"}, {Name: "bb0", Addresses: []netip.Prefix{netip.MustParsePrefix("10.255.0.1/32")}}},
		Routes:     []vppsim.Route{{Prefix: netip.MustParsePrefix("10.255.0.2/32")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Stop)
	folder := t.TempDir()
	journal, err := ownership.OpenJournal(folder)
	if err != nil {
		t.Fatal(err)
	}
	boot, err := statseg.BootTime(t.Context(), sim.StatsSocket())
	if err != nil {
		t.Fatal(err)
	}
	session, err := vpp.Dialer{Socket: sim.APISocket(), Timeout: 5 * time.Second, BootMS: func(context.Context) (int64, error) { return boot, nil }}.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	engine := newEngine(intent.OpenStore(folder, "rhino"), journal, clock)
	engine.Attach(session)
	end := intent.End{
		Key: intent.Key{VLL: "6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01", End: "a"}, Revision: 1, AdminUp: true, Frame: 1514,
		Access: intent.Access{Interface: "cust0", Tagging: intent.Dot1q, Outer: 100, Exact: true},
		Tunnel: intent.Tunnel{Encapsulation: intent.VXLAN, Local: netip.MustParseAddr("10.255.0.1"), Remote: netip.MustParseAddr("10.255.0.2"), VNI: 1001},
	}
	if outcome, err := engine.Put(t.Context(), &intent.Intent{Router: "rhino", Generation: 1, Present: []intent.End{end}}, ""); err != nil || !outcome.Applied {
		t.Fatalf("%+v, %v", outcome, err)
	}
	r := New(Options{
		Engine: engine, Client: &answering{}, Folder: folder, StoreLimit: 1 << 20, StatsSocket: sim.StatsSocket(), Interval: 10 * time.Second,
		Router: "rhino", Log: quiet, Now: clock,
	})
	t.Cleanup(func() { r.close(); r.segment.Close() })
	pass := func(readings int) {
		t.Helper()
		for range readings {
			later.Add(int64(10 * time.Second))
			sim.Count()
			r.prepare(t.Context(), onTick)
			r.searching.Wait()
			engine.CheckDrift(t.Context())
		}
	}
	events := func() (kinds []string) {
		t.Helper()
		records, err := r.events.spool.Oldest(100)
		if err != nil {
			t.Fatal(err)
		}
		for _, record := range records {
			var stored storedEvent
			if err := json.Unmarshal(record.Data, &stored); err != nil {
				t.Fatal(err)
			}
			if e := stored.Event; strings.HasPrefix(e.Kind, "end.") {
				if *e.VLL != end.Key.VLL || *e.End != end.Key.End {
					t.Errorf("an event of %s %s", *e.VLL, *e.End)
				}
				kinds = append(kinds, e.Kind)
			}
		}
		return kinds
	}
	pass(4)
	if err := sim.Forwarding("cust0.100"); err != nil {
		t.Fatal(err)
	}
	reply, err := session.Call(t.Context(), &interfaces.CreateSubif{SwIfIndex: 1, SubID: 999, OuterVlanID: 100, SubIfFlags: 2})
	if err != nil || reply.(*interfaces.CreateSubifReply).Retval == 0 || sim.Forwarding("cust0.100") == nil {
		t.Fatalf("the duplicate: %+v, %v; forwarding: %v", reply, err, sim.Forwarding("cust0.100"))
	}
	pass(2)
	if sim.Forwarding("cust0.100") == nil || len(events()) != 0 {
		t.Errorf("repaired within 20 s; events %q", events())
	}
	pass(3)
	if err := sim.Forwarding("cust0.100"); err != nil {
		t.Errorf("not repaired within 50 s: %v", err)
	}
	pass(4)
	if kinds := events(); !slices.Equal(kinds, []string{"end.vlan_rebuilt", "end.vlan_restored"}) {
		t.Errorf("events %q", kinds)
	}
	if losses := r.vlanLosses(); len(losses) != 0 {
		t.Errorf("still reported: %+v", losses)
	}
	if err := sim.Forwarding("cust0.100"); err != nil {
		t.Fatal(err)
	}
	if err := r.RebuildVLAN(end.Key); err != nil {
		t.Errorf("requested by an operator: %v", err)
	}
	pass(4)
	if kinds := events(); !slices.Equal(kinds, []string{"end.vlan_rebuilt", "end.vlan_restored", "end.vlan_rebuilt"}) {
		t.Errorf("after a request: events %q", kinds)
	}
	if err := r.RebuildVLAN(intent.Key{VLL: end.Key.VLL, End: "z"}); !errors.Is(err, ErrNoSuchVLAN) {
		t.Errorf("of an end that is not here: %v", err)
	}
}
