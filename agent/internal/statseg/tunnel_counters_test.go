package statseg

import "testing"

func TestTunnelCountersBelongToTheInterfaceAndTheRun(t *testing.T) {
	sim := start(t)
	segment := NewReopeningSegment(sim.StatsSocket())
	defer segment.Close()
	boot := bootTime(t, sim)
	if counters, err := segment.TunnelCounters(boot, 1, "cust0"); err != nil || counters != (TunnelCounters{}) {
		t.Errorf("got %+v, %v", counters, err)
	}
	for name, of := range map[string]struct {
		index uint32
		name  string
	}{"another's index": {0, "cust0"}, "another's name": {1, "local0"}, "no index": {99, "cust0"}, "none": {^uint32(0), "cust0"}} {
		if counters, err := segment.TunnelCounters(boot, of.index, of.name); err == nil {
			t.Errorf("%s: %+v", name, counters)
		}
	}
	if _, err := segment.TunnelCounters(boot+1000, 1, "cust0"); err == nil {
		t.Error("those of another run of VPP were read")
	}
}
