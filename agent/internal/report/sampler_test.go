package report

import (
	"testing"
	"time"

	"go.fd.io/govpp/binapi/policer_types"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/statseg"
)

var (
	start = time.UnixMilli(1_790_000_000_000)
	alice = Access{Key: intent.Key{VLL: "6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01", End: "a"}, BootMS: 1000, Index: 1, Name: "cust0.100"}
)

func reading(beat float64, in, out uint64) statseg.Reading {
	return statseg.Reading{
		BootMS: 1000, Heartbeat: beat, Names: []string{"local0", "cust0.100"},
		Rx: []statseg.Count{{}, {Packets: in / 100, Bytes: in}}, Tx: []statseg.Count{{}, {Packets: out / 100, Bytes: out}},
	}
}

func with(r statseg.Reading, change func(*statseg.Reading)) statseg.Reading {
	change(&r)
	return r
}

func of(accesses ...Access) View { return View{BootMS: 1000, Accesses: accesses} }

func after(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func TestTheFirstSampleComesWithTheSecondReading(t *testing.T) {
	var m Sampler
	if s := m.Take(after(0), reading(1, 5000, 1000), of(alice)); s != nil {
		t.Fatalf("the first reading gave %+v", s)
	}
	s := m.Take(after(10), reading(2, 7000, 1300), of(alice))
	want := EndCount{Key: alice.Key, In: statseg.Count{Packets: 20, Bytes: 2000}, Out: statseg.Count{Packets: 3, Bytes: 300}}
	if s == nil || len(s.Ends) != 1 || s.Ends[0] != want {
		t.Fatalf("got %+v, want %+v", s, want)
	}
	next := m.Take(after(20), reading(3, 8000, 1400), of(alice))
	if s.ToUptimeMS <= s.FromUptimeMS || next.FromUptimeMS != s.ToUptimeMS || next.ToUptimeMS <= next.FromUptimeMS {
		t.Errorf("the uptimes %d to %d and %d to %d are not adjacent", s.FromUptimeMS, s.ToUptimeMS, next.FromUptimeMS, next.ToUptimeMS)
	}
	if s.Seq != 1 || s.FromMS != start.UnixMilli() || s.ToMS != start.UnixMilli()+10_000 {
		t.Errorf("got %+v", s)
	}
}

func TestStoppedTrafficIsAZeroAndNotAGap(t *testing.T) {
	var m Sampler
	m.Take(after(0), reading(1, 5000, 1000), of(alice))
	s := m.Take(after(10), reading(2, 5000, 1000), of(alice))
	if s == nil || len(s.Ends) != 1 || s.Ends[0].In.Bytes != 0 {
		t.Errorf("got %+v, want a zero", s)
	}
}

func TestReadingsThatCannotBeComparedAreAGap(t *testing.T) {
	other := func(change func(*Access)) Access { a := alice; change(&a); return a }
	for why, second := range map[string]struct {
		reading statseg.Reading
		access  Access
	}{
		"the counter went back":         {reading(2, 4000, 1000), alice},
		"only one direction did":        {reading(2, 6000, 900), alice},
		"another index":                 {reading(2, 6000, 1100), other(func(a *Access) { a.Index = 0 })},
		"another name":                  {reading(2, 6000, 1100), other(func(a *Access) { a.Name = "cust0.101" })},
		"another VLL has the index":     {reading(2, 6000, 1100), other(func(a *Access) { a.Key.End = "z" })},
		"it was re-created":             {reading(2, 6000, 1100), other(func(a *Access) { a.Made = 7 })},
		"VPP restarted":                 {with(reading(2, 6000, 1100), func(r *statseg.Reading) { r.BootMS = 2000 }), other(func(a *Access) { a.BootMS = 2000 })},
		"the segment is of a dead VPP":  {reading(2, 6000, 1100), other(func(a *Access) { a.BootMS = 2000 })},
		"the index is another's by now": {with(reading(2, 6000, 1100), func(r *statseg.Reading) { r.Names[1] = "loop7" }), alice},
		"the index is not counted yet":  {statseg.Reading{BootMS: 1000, Heartbeat: 2}, alice},
	} {
		t.Run(why, func(t *testing.T) {
			var m Sampler
			m.Take(after(0), reading(1, 5000, 1000), of(alice))
			if s := m.Take(after(10), second.reading, of(second.access)); s != nil {
				t.Errorf("got %+v, want a gap", s)
			}
		})
	}
}

func TestCountingContinuesAfterAGap(t *testing.T) {
	var m Sampler
	m.Take(after(0), reading(1, 5000, 1000), of(alice))
	m.Take(after(10), reading(2, 100, 100), of(alice))
	s := m.Take(after(20), reading(3, 350, 100), of(alice))
	if s == nil || s.Ends[0].In.Bytes != 250 || s.FromMS != after(10).UnixMilli() {
		t.Errorf("got %+v", s)
	}
}

func TestAStalledHeartbeatIsAGapUntilItContinues(t *testing.T) {
	var m Sampler
	view := of(alice)
	m.Take(after(0), reading(1, 5000, 1000), view)
	for _, second := range []int{10, 20, 30} {
		if s := m.Take(after(second), reading(1, 5000, 1000), view); s == nil {
			t.Fatalf("a gap after %d s already: the collector runs every 10 s", second)
		}
	}
	if s := m.Take(after(40), reading(1, 5000, 1000), view); s != nil {
		t.Errorf("after 40 s without a beat: %+v", s)
	}
	if s := m.Take(after(50), reading(2, 9000, 1000), view); s != nil {
		t.Errorf("the first beat bridges the gap: %+v", s)
	}
	if s := m.Take(after(60), reading(3, 9500, 1000), view); s == nil || s.Ends[0].In.Bytes != 500 {
		t.Errorf("after the second beat: %+v", s)
	}
}

func policed(index uint32, cir uint32) Access {
	access := alice
	access.Policer = Policer{Works: true, Index: index, Config: policer_types.PolicerConfig{Cir: cir}}
	return access
}

// coloured returns a reading in which policer 1 has counted the given numbers of frames of 100 bytes.
func coloured(beat float64, conform, exceed, violate uint64) statseg.Reading {
	r := reading(beat, 100*(conform+exceed+violate), 0)
	count := func(n uint64) []statseg.Count { return []statseg.Count{{}, {Packets: n, Bytes: 100 * n}} }
	r.Conform, r.Exceed, r.Violate = count(conform), count(exceed), count(violate)
	return r
}

func TestPolicerCountersAreDifferencesToo(t *testing.T) {
	var m Sampler
	m.Take(after(0), coloured(1, 10, 5, 1), of(policed(1, 50)))
	s := m.Take(after(10), coloured(2, 17, 13, 10), of(policed(1, 50)))
	if want := policedCount(7, 8, 9).Policed; s == nil || s.Ends[0].Policed == nil || *s.Ends[0].Policed != *want {
		t.Fatalf("got %+v, want %+v", s, want)
	}
	if totals := m.Totals(); totals[0].Policed == nil || totals[0].Policed.Violate.Packets != 10 {
		t.Errorf("totals %+v", totals)
	}
}

func TestPolicerCountersThatCannotBeComparedAreAGapButTheInterfaceIsNot(t *testing.T) {
	for why, second := range map[string]struct {
		reading statseg.Reading
		access  Access
	}{
		"one of them went back": {coloured(2, 20, 20, 0), policed(1, 50)},
		// VPP reset its counters, and they have since exceeded the previous values.
		"another rate":             {coloured(2, 50, 50, 50), policed(1, 100)},
		"another policer":          {coloured(2, 50, 50, 50), policed(0, 50)},
		"none works any more":      {coloured(2, 50, 50, 50), alice},
		"it is not counted":        {reading(2, 9000, 0), policed(1, 50)},
		"it has just been applied": {coloured(2, 50, 50, 50), policed(7, 50)},
	} {
		t.Run(why, func(t *testing.T) {
			var m Sampler
			m.Take(after(0), coloured(1, 10, 5, 1), of(policed(1, 50)))
			s := m.Take(after(10), second.reading, of(second.access))
			if s == nil || len(s.Ends) != 1 || s.Ends[0].Policed != nil {
				t.Errorf("got %+v, want the interface's counts alone", s)
			}
		})
	}
}

func TestCountersOfWorkersAreReadWhileVPPDoesNotRespond(t *testing.T) {
	var m Sampler
	view := of(alice)
	m.Take(after(0), reading(1, 5000, 1000), view)
	for i, second := range []int{10, 20, 30, 40, 50, 60} { // far longer than a heartbeat may stay the same
		s := m.TakeUnanswered(after(second), reading(1, 5000+uint64(i+1)*700, 1000), view)
		if s == nil || s.Ends[0].In.Bytes != 700 || s.FromMS != after(second-10).UnixMilli() {
			t.Fatalf("after %d s: %+v", second, s)
		}
	}
	if s := m.Take(after(70), reading(2, 9500, 1000), view); s == nil || s.Ends[0].In.Bytes != 300 || s.FromMS != after(60).UnixMilli() {
		t.Errorf("when it answers again: %+v", s)
	}
}

func TestTheUnchangedCountersOfADeadVPPAreAGapAndNotZeros(t *testing.T) {
	var m Sampler
	view := of(alice)
	m.Take(after(0), reading(1, 5000, 1000), view)
	if s := m.TakeUnanswered(after(10), reading(1, 5400, 1000), view); s == nil || s.Ends[0].In.Bytes != 400 {
		t.Fatalf("what it carried before it died: %+v", s)
	}
	for second := 20; second < 300; second += 10 {
		if s := m.TakeUnanswered(after(second), reading(1, 5400, 1000), view); s != nil {
			t.Fatalf("after %d s: %+v", second, s)
		}
	}
}

func TestABusyMainThreadWithoutWorkersCausesNoGap(t *testing.T) {
	var m Sampler
	view := of(alice)
	m.Take(after(0), reading(1, 5000, 1000), view)
	for _, second := range []int{10, 20} {
		if s := m.TakeUnanswered(after(second), reading(1, 5000, 1000), view); s != nil {
			t.Fatalf("after %d s: %+v", second, s)
		}
	}
	s := m.Take(after(30), reading(2, 5600, 1000), view)
	if s == nil || s.Ends[0].In.Bytes != 600 || s.FromMS != start.UnixMilli() || s.ToMS != after(30).UnixMilli() {
		t.Errorf("got %+v", s)
	}
}
