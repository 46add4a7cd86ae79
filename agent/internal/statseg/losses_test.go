package statseg

import (
	"slices"
	"testing"

	"go.fd.io/govpp/adapter"

	"longline.dev/agent/internal/vppsim"
)

func read(t *testing.T, sim *vppsim.Sim) Reading {
	t.Helper()
	segment, err := Open(sim.StatsSocket(), bootWait)
	if err != nil {
		t.Fatal(err)
	}
	defer segment.Close()
	reading, err := segment.Read()
	if err != nil {
		t.Fatal(err)
	}
	return reading
}

func TestReadReturnsEachLossCounter(t *testing.T) {
	sim := start(t)
	for n, counter := range []string{"drops", "rx-miss", "rx-error", "rx-no-buf", "tx-error"} {
		if err := sim.Lose("cust0", counter, uint64(n+1)); err != nil {
			t.Fatal(err)
		}
	}
	got := read(t, sim).Losses
	for what, c := range map[string]struct {
		counts []uint64
		want   uint64
	}{
		"drops": {got.Drops, 1}, "missed": {got.RxMiss, 2}, "receive errors": {got.RxErrors, 3}, "no buffer": {got.RxNoBuffer, 4},
		"transmit errors": {got.TxErrors, 5},
	} {
		if !slices.Equal(c.counts, []uint64{0, c.want}) {
			t.Errorf("%s: %v, want %d of cust0", what, c.counts, c.want)
		}
	}
}

func TestErrorCountersAreFoundByNameInEachRun(t *testing.T) {
	for range 3 { // the index of a name differs between runs
		errors := read(t, start(t)).Errors
		for what, count := range map[string]*uint64{
			"no such tunnel": errors.NoSuchTunnel, "unknown VLAN": errors.UnknownVLAN, "fragments": errors.FragmentsSent, "reassembled": errors.Reassembled,
			"not reassembled": errors.ReassemblyFailed,
		} {
			if count == nil || *count != 0 {
				t.Errorf("%s: %v", what, count)
			}
		}
	}
}

func TestErrorsWithoutACounterAreNil(t *testing.T) {
	var r Reading
	r.addSimple("/err/ip4-frag/fragment_sent", adapter.SimpleCounterStat{{3}, {4}})
	r.addSimple("/err/ip6-frag/fragment_sent", adapter.SimpleCounterStat{{5}, {0}})
	r.addSimple("/err/ip4-frag/none", adapter.SimpleCounterStat{{9}})
	if r.Errors.FragmentsSent == nil || *r.Errors.FragmentsSent != 12 || r.Errors.NoSuchTunnel != nil {
		t.Errorf("got %+v", r.Errors)
	}
}

func TestCountersOfThreadsAreSummedWithVectorsOfDifferentLengths(t *testing.T) {
	if got := perIndex(adapter.SimpleCounterStat{{1}, {10, 20}, {}, {100, 200, 300}}); !slices.Equal(got, []uint64{111, 220, 300}) {
		t.Errorf("got %v", got)
	}
}

func TestBuffersInThreadCachesAreFree(t *testing.T) {
	sim := start(t)
	if err := sim.UseBuffers(16_000); err != nil {
		t.Fatal(err)
	}
	if got := read(t, sim).Buffers; got != (Buffers{Total: 16_384, Free: 384}) {
		t.Errorf("got %+v", got)
	}
	var two Buffers
	for name, n := range map[string]uint64{
		"default-numa-0/used": 10, "default-numa-0/cached": 1, "default-numa-0/available": 2, "default-numa-1/used": 100,
		"default-numa-1/cached": 20, "default-numa-1/available": 30,
	} {
		two.addPool(poolsFolder+name, n)
	}
	if two != (Buffers{Total: 163, Free: 53}) {
		t.Errorf("two pools make %+v", two)
	}
}

// A search for names compares the whole directory, with about twenty entries for each interface.
func TestMissingEntriesAreSearchedAgainOnlyInAnotherEpoch(t *testing.T) {
	sim := start(t)
	segment, err := Open(sim.StatsSocket(), bootWait)
	if err != nil {
		t.Fatal(err)
	}
	defer segment.Close()
	const name = "/err/none/at all"
	search := func() {
		if _, err := segment.directory(name, bootEntry); err != nil {
			t.Fatal(err)
		}
	}
	search()
	if segment.mayExistNow(name) {
		t.Error("it is searched again immediately")
	}
	later := func() { segment.index.missed[name] = segment.index.missed[name].Add(-2 * absentFor) }
	later()
	search() // the first search happened before any epoch was read
	later()
	if segment.mayExistNow(name) {
		t.Error("it is searched again in the same epoch")
	}
	segment.lastEpoch++
	if !segment.mayExistNow(name) {
		t.Error("it is not searched in another epoch")
	}
}
