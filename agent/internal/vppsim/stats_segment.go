package vppsim

import (
	"encoding/binary"
	"net"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The stats segment, version 2 (vlib/stats/shared.h). It consists of a header, a directory with entries
// of 144 bytes, and vectors; the 8 bytes before a vector contain its length. Pointers are addresses in
// VPP: a reader subtracts the base in the header. In the stand-in, all vectors have fixed positions, with
// room for maxInterfaces. Memory pages that are never written need no memory.
const (
	segmentVersion = 2
	segmentBase    = 0x130000000
	maxInterfaces  = 1 << 16
	maxPolicers    = 1 << 14

	// The use of the segment's heap (bytes), as measured in a VPP 25.10 with one thread.
	heapAtStart      = 546 << 10
	heapPerInterface = 3100

	headerSize     = 48
	entrySize      = 144
	nameSlot       = 8 + 64
	counterSize    = 16 // 8 bytes for packets and 8 for bytes
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

// segment is the stats segment. Only the holder of the VPP's lock writes to it. Clients read the segment
// without a lock. The fields epoch and in_progress of the header show clients when they have to read again.
type segment struct {
	file   *os.File
	memory []byte
	used   int
	places map[string]int // name in the directory -> offset of the entry's value
	// numbers are the positions of names in the directory.
	numbers map[string]int
	nNames  int
	names   int // the offset of a vector with pointers to the names of interfaces
	texts   int // the offset of these names; the length is before each name
	rx, tx  int
	// losses maps the names in interfaceLosses to the offsets of their vectors. errors maps the names of
	// error counters to their offsets.
	losses, errors map[string]int
	// policed are the offsets of the policers' counters: conforming, exceeding, violating.
	policed [3]int
	// heap is the offset of the vector with the size and the use of the segment's memory, as VPP reports
	// them.
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

// newSegment creates a stats segment. If gauges is true, gauges have the type gauge, as in VPP 26.02 and
// later. Otherwise they have the type scalar, as in earlier releases.
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

// vector reserves space for n elements. It returns the offset of the first element.
func (s *segment) vector(n, size int) int {
	at := (s.used + 8 + 7) &^ 7
	s.set(at-8, uint64(n))
	s.used = at + n*size
	return at
}

// oneThread writes a vector with one pointer, which points to the n counters of the main thread.
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

// setInterface resets the counters of an index and then sets the name. A client that has read the new
// name therefore cannot read counters of the previous interface.
func (s *segment) setInterface(index uint32, name string) {
	s.zero(index)
	s.rename(index, name)
}

// deleteInterface sets the name "deleted", as VPP does (vnet/interface/stats.c). The counters remain
// until the index is assigned again.
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

// received and sent add to the counters of an interface.
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

// zeroPolicer resets the counters of a policer. If necessary, it extends the vectors.
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

// police adds to a policer's counter of a class: 0 is conforming, 1 exceeding, 2 violating.
func (s *segment) police(index uint32, class int, packets, bytes uint64) {
	if index < maxPolicers {
		s.add(s.policed[class], index, packets, bytes)
	}
}

// beat increments the heartbeat, as VPP's collector process does while VPP runs.
func (s *segment) beat(now time.Time) {
	s.beats++
	s.set(s.places["/sys/heartbeat"], s.beats)
	s.set(s.places["/sys/last_update"], uint64(now.Unix()))
}

func (s *segment) close() {
	unix.Munmap(s.memory)
	s.file.Close()
}

// serve sends the memory of the segment to each client and closes the connection. This happens on the
// main thread.
func (s *segment) serve(listener *net.UnixListener, occupy func() (func(), bool)) {
	for {
		conn, err := listener.AcceptUnix()
		if err != nil {
			return
		}
		free, _ := occupy()
		conn.WriteMsgUnix([]byte{0}, unix.UnixRights(int(s.file.Fd())), nil)
		conn.Close()
		free()
	}
}
