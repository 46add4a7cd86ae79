package statseg

import (
	"fmt"
	"math"

	"go.fd.io/govpp/adapter"
)

// VPP aborts, with everything that it forwards, when its stats segment is full, and every interface takes
// some of it: a VPP 25.10 with the default `statseg { size 32M }` and one thread died between 7,000 and
// 8,000 interfaces (measured). Workers make it fewer.
const (
	// memoryEntry is a vector of one heap's figures in bytes; total and used are the first two
	// (vlib/stats/provider_mem.c).
	memoryEntry = "/mem/stat segment"
	// bare, perInterface and perThread are the bytes that no interface takes, and one more: its names in the
	// directory, and its counters once for each thread (measured: 0.55 MB, 2.4 kB and 0.2 kB; half as much
	// again for growth).
	bare         = 560_000
	perInterface = 3600
	perThread    = 300
	// fillable is how much may be in use. Vectors grow by half into new memory while the old one is still
	// held, and the directory is nearly all there is: 1 + 1.5 times what it takes.
	fillable = 0.45
)

// Memory is how full the segment is, and what it is full of.
type Memory struct {
	BootMS      int64  // ms since the Unix epoch
	Total, Used uint64 // bytes; VPP counts what is in use every update-interval, by default 10 s
	Threads     int    // by which counters are kept
	Slots       int    // for interfaces, those of deleted ones included
}

// FreeInterfaces is for how many interfaces more than the live ones VPP can surely keep counters; never negative. The
// slots of deleted interfaces are used again. What is in use is worked out too, for VPP's figure may be old.
func (m Memory) FreeInterfaces(live int) int {
	each := float64(perInterface + perThread*m.Threads)
	used := max(float64(m.Used), bare+each*float64(m.Slots))
	return max(0, m.Slots-live) + int(max(0, fillable*float64(m.Total)-used)/each)
}

// FreeInterfaces is for how many interfaces more than the live ones the VPP that started at bootMS has room;
// math.MaxInt where it does not say.
func (r *ReopeningSegment) FreeInterfaces(bootMS int64, live int) (int, error) {
	var memory Memory
	err := r.readFrom(bootMS, func(s *Segment) (int64, error) {
		var err error
		memory, err = s.Memory()
		return memory.BootMS, err
	})
	if err != nil || memory.Total == 0 {
		return math.MaxInt, err
	}
	return memory.FreeInterfaces(live), nil
}

// Fullness is how full the segment of whatever VPP answers at the socket is; it opens and closes the segment, so that
// it may be asked beside everything else.
func Fullness(socket string) (Memory, error) {
	segment, err := Open(socket, noWait)
	if err != nil {
		return Memory{}, err
	}
	defer segment.Close()
	return segment.Memory()
}

// Memory reads how full the segment is; Total is 0 where VPP does not say.
func (s *Segment) Memory() (Memory, error) {
	entries, err := s.entries(memoryEntry, "/if/rx", bootEntry)
	if err != nil {
		return Memory{}, fmt.Errorf("read stats segment: %w", err)
	}
	var m Memory
	for _, entry := range entries {
		switch data := entry.Data.(type) {
		case adapter.ScalarStat:
			m.BootMS = int64(float64(data) * 1000)
		case adapter.SimpleCounterStat:
			if len(data) > 0 && len(data[0]) >= 2 {
				m.Total, m.Used = uint64(data[0][0]), uint64(data[0][1])
			}
		case adapter.CombinedCounterStat:
			m.Threads = len(data)
			for _, thread := range data {
				m.Slots = max(m.Slots, len(thread))
			}
		}
	}
	return m, nil
}
