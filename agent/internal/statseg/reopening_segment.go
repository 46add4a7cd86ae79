package statseg

import (
	"errors"
	"fmt"
	"math"

	"go.fd.io/govpp/adapter"
)

// ReopeningSegment opens the stats segment when it is needed, and opens it again after a restart of VPP.
type ReopeningSegment struct {
	socket  string
	segment *Segment
}

// NewReopeningSegment returns a segment that is not open yet.
func NewReopeningSegment(socket string) *ReopeningSegment { return &ReopeningSegment{socket: socket} }

// Read reads the segment of the VPP that started at bootMS. The mapping of an earlier VPP stays readable, but
// its values no longer change. So Read opens the segment again if the boot time differs.
func (r *ReopeningSegment) Read(bootMS int64) (Reading, error) {
	return readFrom(r, bootMS, func(s *Segment) (Reading, int64, error) {
		reading, err := s.Read()
		return reading, reading.BootMS, err
	})
}

// Reread reads the mapping that is already open, even if another VPP has started since. It does not open a
// new mapping, because a VPP that does not respond provides no mapping.
func (r *ReopeningSegment) Reread() (Reading, error) {
	if r.segment == nil {
		return Reading{}, errors.New("read stats segment: it is not open")
	}
	return r.segment.Read()
}

// readFrom reads from the segment of the VPP that started at bootMS. The function read also returns the boot
// time of the VPP that it read.
func readFrom[T any](r *ReopeningSegment, bootMS int64, read func(*Segment) (T, int64, error)) (value T, err error) {
	for range 2 {
		var found int64
		if err = r.open(); err == nil {
			value, found, err = read(r.segment)
		}
		if err == nil && found == bootMS {
			return value, nil
		}
		r.Close()
		if err == nil {
			err = fmt.Errorf("read stats segment: it belongs to the VPP started at %d and not at %d ms", found, bootMS)
		}
	}
	return value, err
}

func (r *ReopeningSegment) open() (err error) {
	if r.segment == nil {
		r.segment, err = Open(r.socket, noWait)
	}
	return err
}

// Close removes the mapping, if one is open.
func (r *ReopeningSegment) Close() {
	if r.segment != nil {
		r.segment.Close()
		r.segment = nil
	}
}

// Epoch returns the segment's epoch in the VPP that started at bootMS (ms since the Unix epoch). While the
// epoch is the same, VPP has created and deleted no interface. This applies to ports, to sub-interfaces, and
// to VXLAN, GENEVE and GRE tunnels.
//
// VPP changes the epoch when the directory changes. Every call that creates or deletes an interface therefore
// changes the epoch, before VPP sends the reply or an event. See statseg_sw_interface_add_del in
// vnet/interface/stats.c and vlib_stats_segment_unlock (23.10 to 26.06). Other changes of the directory also
// change the epoch.
//
// The epoch does not show changes of the tunnels of some other plugins. These plugins only hide the interface
// of a deleted tunnel, and later reuse the interface with the same index.
func (r *ReopeningSegment) Epoch(bootMS int64) (epoch int64, err error) {
	return readFrom(r, bootMS, (*Segment).epoch)
}

// Interfaces returns the number of interface indices that the VPP that started at bootMS has assigned, and
// the epoch. All interfaces have indices below this number. Some of these indices may be free.
func (r *ReopeningSegment) Interfaces(bootMS int64) (indices int, epoch int64, err error) {
	indices, err = readFrom(r, bootMS, func(s *Segment) (indices int, found int64, err error) {
		indices, epoch, found, err = s.interfaces()
		return indices, found, err
	})
	return indices, epoch, err
}

func (s *Segment) interfaces() (indices int, epoch, bootMS int64, err error) {
	const names = "/if/names"
	dir, err := s.directory(bootEntry, names)
	if err != nil {
		return 0, 0, 0, fmt.Errorf("read stats segment: %w", err)
	}
	indices = -1
	for _, entry := range dir.Entries {
		switch data := entry.Data.(type) {
		case adapter.ScalarStat:
			bootMS = int64(float64(data) * 1000)
		case adapter.NameStat:
			indices = len(data)
		}
	}
	if indices < 0 || bootMS == 0 {
		return 0, 0, 0, errors.New("read stats segment: it has no boot time or no names of interfaces")
	}
	return indices, dir.Epoch, bootMS, nil
}

const bootEntry = "/sys/boottime"

func (s *Segment) epoch() (epoch, bootMS int64, err error) {
	dir, err := s.directory(bootEntry)
	if err != nil {
		return 0, 0, fmt.Errorf("read stats segment: %w", err)
	}
	for _, entry := range dir.Entries {
		if at, ok := entry.Data.(adapter.ScalarStat); ok {
			return dir.Epoch, int64(float64(at) * 1000), nil
		}
	}
	return 0, 0, errors.New("read stats segment: it has no boot time")
}

// VPP aborts, and forwarding stops, when its stats segment is full. Every interface uses a part of the
// segment. A VPP 25.10 with the default `statseg { size 32M }` and one thread aborted when it had between
// 7,000 and 8,000 interfaces (measured). With worker threads, the limit is lower.
const (
	// memoryEntry is a vector of one heap's figures in bytes. The first two are the total and the used size
	// (vlib/stats/provider_mem.c).
	memoryEntry = "/mem/stat segment"
	// bare is the size of a segment without interfaces, in bytes. perInterface is the size of the names of
	// one interface in the directory, and perThread the size of the counters of one interface in one thread,
	// both in bytes. The measured sizes are 0.55 MB, 2.4 kB and 0.2 kB. perInterface and perThread are 1.5
	// times the measured sizes, to allow for growth.
	bare         = 560_000
	perInterface = 3600
	perThread    = 300
	// fillable is the share of the segment that may be in use. When a vector grows, VPP allocates a new
	// vector of 1.5 times the size while the old vector still exists. The directory takes nearly all of the
	// segment. When it grows, it needs 1 + 1.5 times its size.
	fillable = 0.45
)

// Memory describes the size and the use of the segment.
type Memory struct {
	BootMS      int64  // ms since the Unix epoch
	Total, Used uint64 // bytes; VPP updates Used every update-interval, by default 10 s
	Threads     int    // number of threads that keep counters
	Slots       int    // number of slots for interfaces, including the slots of deleted interfaces
}

// FreeInterfaces returns the number of interfaces that certainly fit into the segment in addition to the live
// interfaces. The result is never negative. VPP reuses the slots of deleted interfaces. VPP's figure for the
// used memory may be old. So FreeInterfaces also calculates the used memory, and uses the larger of the two
// values.
func (m Memory) FreeInterfaces(live int) int {
	each := float64(perInterface + perThread*m.Threads)
	used := max(float64(m.Used), bare+each*float64(m.Slots))
	return max(0, m.Slots-live) + int(max(0, fillable*float64(m.Total)-used)/each)
}

// FreeInterfaces returns the number of interfaces that fit into the segment of the VPP that started at
// bootMS, in addition to the live interfaces. If VPP does not report the size of the segment, it returns
// math.MaxInt. If the segment cannot be read, it returns math.MaxInt and an error.
func (r *ReopeningSegment) FreeInterfaces(bootMS int64, live int) (int, error) {
	memory, err := readFrom(r, bootMS, func(s *Segment) (Memory, int64, error) {
		memory, err := s.Memory()
		return memory, memory.BootMS, err
	})
	if err != nil || memory.Total == 0 {
		return math.MaxInt, err
	}
	return memory.FreeInterfaces(live), nil
}

// Fullness returns the memory use of the stats segment of the VPP behind the socket. It opens and closes its
// own mapping, so it can run concurrently with all other reads.
func Fullness(socket string) (Memory, error) {
	segment, err := Open(socket, noWait)
	if err != nil {
		return Memory{}, err
	}
	defer segment.Close()
	return segment.Memory()
}

// Memory reads the memory use of the segment. Total and Used are 0 if VPP does not report them.
func (s *Segment) Memory() (Memory, error) {
	dir, err := s.directory(memoryEntry, "/if/rx", bootEntry)
	if err != nil {
		return Memory{}, fmt.Errorf("read stats segment: %w", err)
	}
	var m Memory
	for _, entry := range dir.Entries {
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
