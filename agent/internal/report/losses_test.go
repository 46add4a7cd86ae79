package report

import (
	"reflect"
	"testing"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/statseg"
)

var port = Port{Index: 2, Name: "bb0"}

// losing returns a reading in which the port of alice's access, the access and its tunnel have each dropped
// the given number of frames.
func losing(beat float64, drops uint64, change ...func(*statseg.Reading)) statseg.Reading {
	r := reading(beat, 5000*uint64(beat), 1000*uint64(beat))
	r.Names = append(r.Names, "bb0", "vxlan_tunnel0")
	r.Rx = append(r.Rx, statseg.Count{Packets: 10 * drops}, statseg.Count{})
	r.Tx = append(r.Tx, statseg.Count{Packets: 20 * drops}, statseg.Count{})
	counts := func(n uint64) []uint64 { return []uint64{0, n, n, n} }
	r.Losses = statseg.InterfaceLosses{
		Drops: []uint64{0, drops, 2 * drops, 3 * drops}, RxMiss: counts(drops), RxErrors: counts(2 * drops), RxNoBuffer: counts(3 * drops),
		TxErrors: counts(4 * drops),
	}
	none, some := drops, 5*drops
	r.Errors = statseg.RouterErrors{NoSuchTunnel: &none, FragmentsSent: &some}
	r.Buffers = statseg.Buffers{Total: 16384, Free: 16384 - drops}
	for _, each := range change {
		each(&r)
	}
	return r
}

func tunnelled() Access {
	access := alice
	access.Tunnel = Tunnel{Index: 3, Name: "vxlan_tunnel0"}
	return access
}

func viewed(access Access) View {
	return View{BootMS: 1000, Accesses: []Access{access}, Ports: []Port{port}}
}

func known(n uint64) *uint64 { return &n }

func TestLossesAreDifferencesToo(t *testing.T) {
	var m Sampler
	m.Take(after(0), losing(1, 100), viewed(tunnelled()))
	s := m.Take(after(10), losing(2, 107), viewed(tunnelled()))
	if s == nil || len(s.Ends) != 1 {
		t.Fatalf("got %+v", s)
	}
	if got := s.Ends[0].Dropped; !reflect.DeepEqual(got, Dropped{In: known(7), Out: known(21)}) {
		t.Errorf("the end dropped %+v", got)
	}
	want := []PortCount{{Name: "bb0", Rx: 70, Tx: 140, Drops: 14, RxMiss: 7, RxErrors: 14, RxNoBuffer: 21, TxErrors: 28}}
	if !reflect.DeepEqual(s.Ports, want) {
		t.Errorf("ports: %+v, want %+v", s.Ports, want)
	}
	if want[0].Lost() != 70 {
		t.Errorf("lost %d", want[0].Lost())
	}
	router := &RouterCount{statseg.RouterErrors{NoSuchTunnel: known(7), FragmentsSent: known(35)}, statseg.Buffers{Total: 16384, Free: 16277}}
	if !reflect.DeepEqual(s.Router, router) {
		t.Errorf("router: %+v, want %+v", s.Router, router)
	}
}

func TestARouterWithoutLinesReportsTheLossesOfItsPorts(t *testing.T) {
	var m Sampler
	view := View{BootMS: 1000, Ports: []Port{port}}
	m.Take(after(0), losing(1, 100), view)
	if s := m.Take(after(10), losing(2, 100), view); s == nil || len(s.Ends) != 0 || len(s.Ports) != 1 || s.Seq != 1 {
		t.Errorf("got %+v", s)
	}
}

func TestALossThatCannotBeComparedIsAGapButTrafficIsNot(t *testing.T) {
	remade, another := tunnelled(), tunnelled()
	remade.Tunnel.Made = 9
	another.Tunnel.Name = "vxlan_tunnel1"
	local := alice
	for why, c := range map[string]struct {
		reading statseg.Reading
		access  Access
		in, out bool
		ports   int
	}{
		"both are known":                {losing(2, 107), tunnelled(), true, true, 1},
		"the tunnel was re-created":     {losing(2, 107), remade, true, false, 1},
		"another tunnel has the index":  {losing(2, 107), another, true, false, 1},
		"a local cross-connect":         {losing(2, 107), local, true, false, 1},
		"another user cleared counters": {losing(2, 50), tunnelled(), false, false, 0},
		"VPP counts no drops":           {losing(2, 107, func(r *statseg.Reading) { r.Losses.Drops = nil }), tunnelled(), false, false, 0},
		"VPP counts no misses":          {losing(2, 107, func(r *statseg.Reading) { r.Losses.RxMiss = nil }), tunnelled(), true, true, 0},
		"the port is another's":         {losing(2, 107, func(r *statseg.Reading) { r.Names[2] = "bb1" }), tunnelled(), true, true, 0},
	} {
		t.Run(why, func(t *testing.T) {
			var m Sampler
			m.Take(after(0), losing(1, 100), viewed(tunnelled()))
			s := m.Take(after(10), c.reading, viewed(c.access))
			if s == nil || len(s.Ends) != 1 || s.Ends[0].In.Bytes != 5000 {
				t.Fatalf("got %+v", s)
			}
			if d := s.Ends[0].Dropped; (d.In != nil) != c.in || (d.Out != nil) != c.out || len(s.Ports) != c.ports {
				t.Errorf("dropped %+v, ports %+v", d, s.Ports)
			}
		})
	}
}

func TestAfterARestartOfVPPNothingIsCompared(t *testing.T) {
	var m Sampler
	m.Take(after(0), losing(1, 100), viewed(tunnelled()))
	rebooted := losing(2, 200, func(r *statseg.Reading) { r.BootMS = 2000 })
	view := viewed(tunnelled())
	view.BootMS, view.Accesses[0].BootMS = 2000, 2000
	if s := m.Take(after(10), rebooted, view); s != nil {
		t.Errorf("got %+v", s)
	}
}

func TestTotalsAreVPPsCountersSinceItsStart(t *testing.T) {
	var m Sampler
	if ports, router := m.LossTotals(); ports != nil || router != nil {
		t.Errorf("before the first reading: %+v, %+v", ports, router)
	}
	m.Take(after(0), losing(1, 100), viewed(tunnelled()))
	ports, router := m.LossTotals()
	if len(ports) != 1 || ports[0].RxMiss != 100 || router == nil || *router.NoSuchTunnel != 100 || router.Free != 16284 {
		t.Errorf("got %+v, %+v", ports, router)
	}
	if end := m.Totals()[0].Dropped; *end.In != 100 || *end.Out != 300 {
		t.Errorf("the end has dropped %d and %d", *end.In, *end.Out)
	}
	m.Forget()
	if ports, router := m.LossTotals(); ports != nil || router != nil {
		t.Errorf("after it forgot: %+v, %+v", ports, router)
	}
}

// TestTestFramesAreNotCountedAsCustomerFrames: VPP drops test frames at the far end's tunnel, where it may
// also drop the customer's frames.
func TestTestFramesAreNotCountedAsCustomerFrames(t *testing.T) {
	tested := viewed(tunnelled())
	tested.Tested = map[intent.Key]bool{alice.Key: true}
	var m Sampler
	m.Take(after(0), losing(1, 100), viewed(tunnelled()))
	for second, c := range []struct {
		drops uint64
		view  View
		out   *uint64
	}{{302, tested, nil}, {303, tested, nil}, {304, viewed(tunnelled()), known(3)}, {304, viewed(tunnelled()), known(0)}} {
		s := m.Take(after(10*(second+1)), losing(float64(second+2), c.drops), c.view)
		if s == nil || len(s.Ends) != 1 {
			t.Fatalf("got %+v", s)
		}
		if got := s.Ends[0].Dropped; got.In == nil || !reflect.DeepEqual(got.Out, c.out) {
			t.Errorf("sample %d: dropped %+v, want %v", second, got, c.out)
		}
	}
	if end := m.Totals()[0].Dropped; *end.Out != 3*(304-303+100) {
		t.Errorf("in all the end dropped %d of the customer's frames", *end.Out)
	}
}
