package report

import (
	"context"
	"encoding/json"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	interfaces "go.fd.io/govpp/binapi/interface"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
	"longline.dev/agent/internal/vppsim"
)

// wire is what comes to alice's port: frames with her VLAN and with others, a second.
type wire struct {
	t                 *testing.T
	watch             lostVLANs
	at                time.Time
	access            Access
	in, drops, others uint64
	unknown           *uint64
	// lost is while VPP drops her frames.
	lost bool
	// away is for how many readings her sub-interface is not there once it was asked for.
	away  int
	anew  int // how often her sub-interface was to be made anew
	words []string
}

func newWire(t *testing.T) *wire {
	access := alice
	access.Port, access.Made = port, 1
	return &wire{t: t, at: start, access: access, unknown: new(uint64)}
}

// pass lets time pass with a reading every ten seconds. What was asked for is made at once, and VPP takes her frames again.
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
		w.drops += dropped
		if w.unknown != nil {
			*w.unknown += dropped
		}
		var unknown *uint64
		if w.unknown != nil {
			unknown = known(*w.unknown)
		}
		name := "cust0.100"
		if w.anew > 0 && w.away > 0 {
			name = "local1"
			w.away--
		}
		reading := statseg.Reading{
			BootMS: 1000, Names: []string{"local0", name, "bb0"},
			Rx: []statseg.Count{{}, {Packets: w.in}, {}}, Tx: make([]statseg.Count, 3),
			Losses: statseg.InterfaceLosses{Drops: []uint64{0, 0, w.drops}},
			Errors: statseg.RouterErrors{UnknownVLAN: unknown},
		}
		lost, restored := w.watch.take(w.at, reading, of(w.access))
		for _, words := range restored {
			w.words = append(w.words, words)
		}
		for _, access := range lost {
			if access.Index != 1 || access.Name != "cust0.100" {
				w.t.Errorf("to be made anew: %+v", access)
			}
			w.anew++
			w.access.Made, w.in, w.lost = w.access.Made+1, 0, false
		}
	}
}

func TestAVLANThatVPPHasLostIsMadeAnewAndTold(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(w *wire)
		anew    int
		told    int
	}{
		"nothing happens": {func(w *wire) { w.pass(time.Hour, 5, 0) }, 0, 0},
		"it is lost": {func(w *wire) {
			w.pass(time.Minute, 5, 0)
			w.lost = true
			w.pass(2*time.Minute, 5, 0)
		}, 1, 1},
		"and is not there in the reading while it is made anew": {func(w *wire) {
			w.pass(time.Minute, 5, 0)
			w.lost, w.away = true, 1
			w.pass(2*time.Minute, 5, 0)
		}, 1, 1},
		"in the first interval in which frames come in": {func(w *wire) {
			w.pass(20*time.Second, 2, 3) // of five a second, three were hers already
			w.lost = true
			w.pass(2*time.Minute, 5, 0)
		}, 1, 1},
		"beside a few of other VLANs": {func(w *wire) {
			w.pass(time.Minute, 5, 2)
			w.lost = true
			w.pass(2*time.Minute, 5, 2)
		}, 1, 1},
		"beside many of other VLANs nobody can say what it was": {func(w *wire) {
			w.pass(time.Minute, 5, 1000)
			w.lost = true
			w.pass(2*time.Minute, 5, 1000)
		}, 1, 0},
		"for a moment": {func(w *wire) {
			w.pass(time.Minute, 5, 0)
			w.lost = true
			w.pass(20*time.Second, 5, 0)
			w.lost = false
			w.pass(time.Minute, 5, 0)
		}, 0, 0},
		"the customer stops": {func(w *wire) {
			w.pass(time.Minute, 5, 0)
			w.pass(time.Hour, 0, 0)
		}, 0, 0},
		"the customer never began": {func(w *wire) { w.pass(time.Hour, 0, 5) }, 0, 0},
		"the customer stops where other VLANs come": {func(w *wire) {
			w.pass(time.Minute, 5, 3)
			w.pass(time.Hour, 0, 3)
		}, 1, 0},
		"and goes on later": {func(w *wire) {
			w.pass(time.Minute, 5, 3)
			w.pass(time.Hour, 0, 3)
			w.pass(time.Minute, 5, 3)
		}, 1, 0},
		"and goes on soon": {func(w *wire) {
			w.pass(time.Minute, 5, 3)
			w.pass(time.Minute, 0, 3)
			w.pass(time.Minute, 5, 3)
		}, 1, 0},
		"the customer changes the VLAN": {func(w *wire) {
			w.pass(time.Minute, 5, 0)
			w.pass(time.Hour, 0, 5)
		}, 1, 0},
		"and takes it back soon": {func(w *wire) {
			w.pass(time.Minute, 5, 0)
			w.pass(time.Minute, 0, 5)
			w.pass(time.Minute, 5, 0)
		}, 1, 0},
		"and takes it back much later": {func(w *wire) {
			w.pass(time.Minute, 5, 0)
			w.pass(time.Hour, 0, 5)
			w.pass(time.Hour, 5, 0)
		}, 1, 0},
		"it is lost again and again, for forty minutes": {func(w *wire) {
			for range 40 {
				w.pass(time.Minute, 5, 0)
				w.lost = true
			}
		}, 4, 4},
		"VPP does not count unknown VLANs": {func(w *wire) {
			w.unknown = nil
			w.pass(time.Minute, 5, 0)
			w.lost = true
			w.pass(time.Hour, 5, 0)
		}, 0, 0},
		"a whole port": {func(w *wire) {
			w.access.Port = Port{}
			w.pass(time.Minute, 5, 0)
			w.lost = true
			w.pass(time.Hour, 5, 0)
		}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			c.happens(w)
			if w.anew != c.anew || len(w.words) != c.told {
				t.Errorf("made anew %d times and told %d times, want %d and %d", w.anew, len(w.words), c.anew, c.told)
			}
		})
	}
}

func TestWhatIsToldOfALostVLANSaysSinceWhen(t *testing.T) {
	w := newWire(t)
	w.pass(time.Minute, 5, 0)
	w.lost = true
	w.pass(2*time.Minute, 5, 0)
	want := "from " + after(60).UTC().Format(time.DateTime) + " UTC no frame with the VLAN of cust0.100 came in, and bb0 dropped frames of " +
		"unknown VLANs; made anew it takes them. VPP does so when somebody asks for another sub-interface with the same VLAN and is refused"
	if len(w.words) != 1 || w.words[0] != want {
		t.Errorf("told %q, want %q", w.words, want)
	}
}

// TestTheAgentMendsWhatARefusedDuplicateStopped puts all of it together: frames, counters, the engine and the event.
func TestTheAgentMendsWhatARefusedDuplicateStopped(t *testing.T) {
	var later atomic.Int64 // nanoseconds; the stand-in asks on its own too
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
	engine := converge.New(intent.OpenStore(folder, "rhino"), journal, quiet, clock)
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
			r.look(t.Context(), onTick)
			engine.LookForDrift(t.Context())
		}
	}
	told := func() (details []string) {
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
			switch e := stored.Event; e.Kind {
			case "end.vlan_restored":
				if *e.VLL != end.Key.VLL || *e.End != end.Key.End {
					t.Errorf("told of %s %s", *e.VLL, *e.End)
				}
				details = append(details, *e.Detail)
			case "end.drift", "end.contested", "end.conflict":
				t.Errorf("%s: %s", e.Kind, *e.Detail)
			}
		}
		return details
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
	if sim.Forwarding("cust0.100") == nil || len(told()) != 0 {
		t.Errorf("mended within 20 s; told %q", told())
	}
	pass(2)
	if err := sim.Forwarding("cust0.100"); err != nil {
		t.Errorf("not mended within 40 s: %v", err)
	}
	pass(4)
	if details := told(); len(details) != 1 {
		t.Errorf("told %q", details)
	}
}
