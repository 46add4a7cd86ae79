package vppsim

import (
	"encoding/binary"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The stats segment, version 2 (vlib/stats/shared.h): a header, a directory vector of 144-byte entries, and
// vectors with their length in the 8 bytes before them. Pointers are addresses in VPP; a reader subtracts
// the base in the header. Here everything has a fixed position, with room for maxInterfaces; pages that are
// never written take no memory.
const (
	segmentVersion = 2
	segmentBase    = 0x130000000
	maxInterfaces  = 1 << 16
	maxPolicers    = 1 << 14

	// Measured: the use of the segment's heap by a VPP 25.10 with one thread.
	heapAtStart      = 546 << 10
	heapPerInterface = 3100

	headerSize     = 48
	entrySize      = 144
	nameSlot       = 8 + 64
	counterSize    = 16 // packets, bytes
	offEpoch       = 16
	offInProgress  = 24
	offDirectory   = 32
	typeScalar     = 1
	typeSimple     = 2
	typeCombined   = 3
	typeNameVector = 4
	typeSymlink    = 6
	typeGauge      = 9
)

// segment is written by the holder of the VPP's lock, and read by clients without one. The fields epoch and
// in_progress of the header show a client when to read again.
type segment struct {
	file   *os.File
	memory []byte
	used   int
	places map[string]int // directory name -> offset of its union
	// numbers are the positions in the directory.
	numbers map[string]int
	nNames  int
	names   int // offsets of the vectors' data
	texts   int // each name after its length
	rx, tx  int
	// losses are the vectors of interfaceLosses, errors the error counters, by name.
	losses, errors map[string]int
	// policed are the policers' counters: conforming, exceeding, violating.
	policed [3]int
	// heap is the segment's own memory as VPP reports it: total, used.
	heap  int
	epoch uint64
	beats uint64
}

type directoryEntry struct {
	name string
	kind uint32
}

var directory = append([]directoryEntry{
	{"/sys/heartbeat", typeScalar}, {"/sys/boottime", typeScalar}, {"/sys/last_update", typeScalar},
	{"/sys/num_worker_threads", typeScalar}, {"/if/names", typeNameVector},
	{"/if/rx", typeCombined}, {"/if/tx", typeCombined},
	{"/mem/stat segment", typeSimple},
	{"/net/policer/conform", typeCombined}, {"/net/policer/exceed", typeCombined}, {"/net/policer/violate", typeCombined},
}, lossDirectory()...)

// newSegment writes gauges as gauges, or as scalars like VPP before 26.02.
func newSegment(boot time.Time, heap uint64, gauges bool) (*segment, error) {
	size := headerSize + 8 + len(directory)*entrySize + maxInterfaces*(8+nameSlot+2*counterSize+8*len(interfaceLosses)) + 3*maxPolicers*counterSize + 1<<12
	fd, err := unix.MemfdCreate("vppsim-stats", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "vppsim-stats")
	if err := file.Truncate(int64(size)); err != nil {
		file.Close()
		return nil, err
	}
	memory, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		file.Close()
		return nil, err
	}
	s := &segment{file: file, memory: memory, used: headerSize, places: map[string]int{}, numbers: map[string]int{}}
	s.layOut(gauges)
	s.set(s.heap, heap)
	s.set(s.places["/sys/boottime"], uint64(boot.Unix()))
	s.set(s.places["/sys/last_update"], uint64(boot.Unix()))
	s.bump()
	return s, nil
}

func (s *segment) layOut(gauges bool) {
	s.set(0, segmentVersion)
	s.set(8, segmentBase)
	entries := s.vector(len(directory), entrySize)
	s.set(offDirectory, segmentBase+uint64(entries))
	for n, entry := range directory {
		at := entries + n*entrySize
		if entry.kind == typeGauge && !gauges {
			entry.kind = typeScalar
		}
		binary.LittleEndian.PutUint32(s.memory[at:], entry.kind)
		copy(s.memory[at+16:at+entrySize-1], entry.name)
		s.places[entry.name], s.numbers[entry.name] = at+8, n
	}
	s.names = s.pointed("/if/names", s.vector(maxInterfaces, 8))
	s.texts = s.vector(maxInterfaces, nameSlot)
	s.rx = s.pointed("/if/rx", s.oneThread(maxInterfaces, counterSize))
	s.tx = s.pointed("/if/tx", s.oneThread(maxInterfaces, counterSize))
	for n, name := range []string{"/net/policer/conform", "/net/policer/exceed", "/net/policer/violate"} {
		s.policed[n] = s.pointed(name, s.oneThread(maxPolicers, counterSize))
	}
	s.heap = s.pointed("/mem/stat segment", s.oneThread(2, 8))
	for _, counters := range []*int{&s.rx, &s.tx, &s.heap, &s.policed[0], &s.policed[1], &s.policed[2]} {
		*counters = int(s.get(*counters) - segmentBase)
	}
	s.layOutLosses()
	s.setLength(0)
	for _, vector := range s.policed {
		s.set(vector-8, 0)
	}
}

// vector reserves room for n elements and returns the offset of the first.
func (s *segment) vector(n, size int) int {
	at := (s.used + 8 + 7) &^ 7
	s.set(at-8, uint64(n))
	s.used = at + n*size
	return at
}

// oneThread writes a vector with one pointer, to the main thread's n counters.
func (s *segment) oneThread(n, size int) int {
	threads := s.vector(1, 8)
	s.set(threads, segmentBase+uint64(s.vector(n, size)))
	return threads
}

func (s *segment) pointed(name string, at int) int {
	s.set(s.places[name], segmentBase+uint64(at))
	return at
}

func (s *segment) set(at int, value uint64) {
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&s.memory[at])), value)
}

func (s *segment) get(at int) uint64 {
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&s.memory[at])))
}

func (s *segment) setLength(n int) {
	s.nNames = n
	s.set(s.heap+8, heapAtStart+uint64(n)*heapPerInterface)
	for _, vector := range []int{s.names, s.rx, s.tx} {
		s.set(vector-8, uint64(n))
	}
	for _, vector := range s.losses {
		s.set(vector-8, uint64(n))
	}
}

func (s *segment) bump() {
	s.epoch++
	s.set(offEpoch, s.epoch)
}

// setInterface resets an index's counters and then sets its name. A client that reads the name therefore
// cannot read counters of the previous interface.
func (s *segment) setInterface(index uint32, name string) {
	s.zero(index)
	s.rename(index, name)
}

// deleteInterface sets the name that VPP uses for a deleted interface (vnet/interface/stats.c). Its
// counters stay until the index is assigned again.
func (s *segment) deleteInterface(index uint32) { s.rename(index, "deleted") }

func (s *segment) rename(index uint32, name string) {
	if index >= maxInterfaces {
		return
	}
	s.set(offInProgress, 1)
	if int(index) >= s.nNames {
		s.setLength(int(index) + 1)
	}
	text := s.texts + int(index)*nameSlot + 8
	copy(s.memory[text:text+64], make([]byte, 64))
	copy(s.memory[text:text+63], name)
	s.set(text-8, uint64(min(len(name), 63)+1))
	s.set(s.names+int(index)*8, segmentBase+uint64(text))
	s.bump()
	s.set(offInProgress, 0)
}

func (s *segment) zero(index uint32) {
	if index >= maxInterfaces {
		return
	}
	for _, at := range []int{s.rx + int(index)*counterSize, s.tx + int(index)*counterSize} {
		s.set(at, 0)
		s.set(at+8, 0)
	}
	for _, vector := range s.losses {
		s.set(vector+int(index)*8, 0)
	}
}

// received and sent add to an interface's counters.
func (s *segment) received(index uint32, packets, bytes uint64) { s.add(s.rx, index, packets, bytes) }
func (s *segment) sent(index uint32, packets, bytes uint64)     { s.add(s.tx, index, packets, bytes) }

func (s *segment) add(vector int, index uint32, packets, bytes uint64) {
	if index >= maxInterfaces {
		return
	}
	at := vector + int(index)*counterSize
	s.set(at, s.get(at)+packets)
	s.set(at+8, s.get(at+8)+bytes)
}

// zeroPolicer resets a policer's counters and makes room for them.
func (s *segment) zeroPolicer(index uint32) {
	if index >= maxPolicers {
		return
	}
	for _, vector := range s.policed {
		s.set(vector-8, max(s.get(vector-8), uint64(index)+1))
		at := vector + int(index)*counterSize
		s.set(at, 0)
		s.set(at+8, 0)
	}
}

// police adds to a policer's counters of one class: 0 conforming, 1 exceeding, 2 violating.
func (s *segment) police(index uint32, class int, packets, bytes uint64) {
	if index < maxPolicers {
		s.add(s.policed[class], index, packets, bytes)
	}
}

// beat simulates VPP's collector process: the heartbeat of a running VPP grows.
func (s *segment) beat(now time.Time) {
	s.beats++
	s.set(s.places["/sys/heartbeat"], s.beats)
	s.set(s.places["/sys/last_update"], uint64(now.Unix()))
}

func (s *segment) close() {
	unix.Munmap(s.memory)
	s.file.Close()
}
