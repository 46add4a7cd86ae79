package statseg

import "testing"

// The default segment of a VPP 25.10 with one thread: 546 kB in use without interfaces, and an abort below
// 8,000.
func TestFreeInterfacesStaysBelowTheNumberThatAbortsVPP(t *testing.T) {
	one := Memory{Total: 32 << 20, Used: 546 << 10, Threads: 1, Slots: 1}
	if room := one.FreeInterfaces(1); room < 3000 || room > 7000 {
		t.Errorf("room for %d interfaces", room)
	}
	eight := one
	eight.Threads = 9
	if eight.FreeInterfaces(1) >= one.FreeInterfaces(1) {
		t.Errorf("with eight workers there is room for %d interfaces, with none for %d", eight.FreeInterfaces(1), one.FreeInterfaces(1))
	}
	if full := (Memory{Total: 32 << 20, Used: 22 << 20, Threads: 1, Slots: 7000}); full.FreeInterfaces(7000) != 0 {
		t.Errorf("a segment with 22 of 32 MB in use has room for %d", full.FreeInterfaces(7000))
	}
	if stale := (Memory{Total: 32 << 20, Used: 546 << 10, Threads: 1, Slots: 6000}); stale.FreeInterfaces(6000) != 0 {
		t.Errorf("after 6000 interfaces that VPP's own figure does not show yet there is room for %d", stale.FreeInterfaces(6000))
	}
	if freed := (Memory{Total: 32 << 20, Used: 22 << 20, Threads: 1, Slots: 7000}); freed.FreeInterfaces(6900) != 100 {
		t.Errorf("in the slots of 100 deleted interfaces there is room for %d", freed.FreeInterfaces(6900))
	}
}
