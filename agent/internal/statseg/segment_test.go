package statseg

import (
	"net/netip"
	"testing"

	"longline.dev/agent/internal/vppsim"
)

func start(t *testing.T) *vppsim.Sim {
	t.Helper()
	sim, err := vppsim.Start(t.Context(), vppsim.Config{Interfaces: []vppsim.Interface{
		{Name: "cust0", Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Stop)
	return sim
}

func bootTime(t *testing.T, sim *vppsim.Sim) int64 {
	t.Helper()
	at, err := BootTime(t.Context(), sim.StatsSocket())
	if err != nil || at == 0 {
		t.Fatalf("boot time %d, %v", at, err)
	}
	return at
}

func TestReadReturnsCountersAndNamesOfEveryInterface(t *testing.T) {
	sim := start(t)
	segment := NewReopeningSegment(sim.StatsSocket())
	defer segment.Close()
	reading, err := segment.Read(bootTime(t, sim))
	if err != nil || len(reading.Rx) < 2 || len(reading.Tx) < 2 { // local0 and cust0
		t.Errorf("got %+v, %v", reading, err)
	}
	if len(reading.Names) < 2 || reading.Names[0] != "local0" || reading.Names[1] != "cust0" {
		t.Errorf("the names are %q", reading.Names)
	}
}

func TestReadOpensTheSegmentAgainAfterARestartOfVPP(t *testing.T) {
	sim := start(t)
	segment := NewReopeningSegment(sim.StatsSocket())
	defer segment.Close()
	before := bootTime(t, sim)
	if _, err := segment.Read(before); err != nil {
		t.Fatal(err)
	}
	for bootTime(t, sim) == before { // boot times have a limited resolution
		if err := sim.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	after := bootTime(t, sim)
	if reading, err := segment.Read(after); err != nil || reading.BootMS != after {
		t.Errorf("after the restart: %+v, %v", reading, err)
	}
	if reading, err := segment.Read(before); err == nil {
		t.Errorf("the VPP before the restart was read: %+v", reading)
	}
}

func TestReadFailsWithoutASocket(t *testing.T) {
	if _, err := NewReopeningSegment(t.TempDir() + "/stats.sock").Read(1); err == nil {
		t.Error("no error")
	}
}
