package statseg

import "testing"

func TestEntriesRequestedLaterAreFound(t *testing.T) {
	sim := start(t)
	segment := NewReopeningSegment(sim.StatsSocket())
	defer segment.Close()
	boot := bootTime(t, sim)
	if _, err := segment.Epoch(boot); err != nil { // searches for fewer names than the next call
		t.Fatal(err)
	}
	if free, err := segment.FreeInterfaces(boot, 2); err != nil || free > 1<<30 {
		t.Errorf("room for %d interfaces, %v: the segment's size was not read", free, err)
	}
	if reading, err := segment.Read(boot); err != nil || reading.Names == nil {
		t.Errorf("got %+v, %v", reading, err)
	}
}
