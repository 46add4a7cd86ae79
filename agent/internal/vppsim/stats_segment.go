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
	file     *os.File
	memory   []byte
	used     int
	places   map[string]int // name in the directory -> offset of the entry's value
	numbers  map[string]int // name -> position in the directory
	counters map[string]counters
	errors   map[string]uint32 // name of an error counter -> its index in errorVector
	nNames   int
	names    int // the offset of a vector with pointers to the names of interfaces
	texts    int // the offset of these names; the length is before each name
	epoch    uint64
	beats    uint64
}

// counters is a vector with the main thread's counters.
type counters struct{ at, capacity, size int }

// directoryEntry is an entry of the directory. length is the capacity of a vector of counters, otherwise 0.
type directoryEntry struct {
	name   string
	kind   uint32
	length int
}

const (
	// heapEntry has the size and the use of the segment's memory, as VPP reports them.
	heapEntry = "/mem/stat segment"
	received  = "/if/rx"
	sent      = "/if/tx"
)

// policed are the counters of policers: conforming, exceeding, violating.
var policed = [3]string{"/net/policer/conform", "/net/policer/exceed", "/net/policer/violate"}

var directory = append([]directoryEntry{
	{"/sys/heartbeat", typeScalar, 0}, {"/sys/boottime", typeScalar, 0}, {"/sys/last_update", typeScalar, 0},
	{"/sys/num_worker_threads", typeScalar, 0}, {"/if/names", typeNameVector, 0},
	{received, typeCombined, maxInterfaces}, {sent, typeCombined, maxInterfaces}, {heapEntry, typeSimple, 2},
	{policed[0], typeCombined, maxPolicers}, {policed[1], typeCombined, maxPolicers}, {policed[2], typeCombined, maxPolicers},
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
	s := &segment{
		file: file, memory: memory, used: headerSize, places: map[string]int{}, numbers: map[string]int{},
		counters: map[string]counters{}, errors: map[string]uint32{},
	}
	s.layOut(gauges)
	s.add(heapEntry, 0, heap)
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
	s.names = s.vector(maxInterfaces, 8)
	s.set(s.places["/if/names"], segmentBase+uint64(s.names))
	s.texts = s.vector(maxInterfaces, nameSlot)
	for _, entry := range directory {
		if entry.length == 0 {
			continue
		}
		c := counters{capacity: entry.length, size: 8}
		if entry.kind == typeCombined {
			c.size = counterSize
		}
		threads := s.vector(1, 8)
		c.at = s.vector(c.capacity, c.size)
		s.set(s.places[entry.name], segmentBase+uint64(threads))
		s.set(threads, segmentBase+uint64(c.at))
		s.counters[entry.name] = c
	}
	s.layOutErrors()
	s.useBuffers(0)
	s.setLength(0)
	for _, name := range policed {
		s.set(s.counters[name].at-8, 0)
	}
}

// vector reserves space for n elements. It returns the offset of the first element.
func (s *segment) vector(n, size int) int {
	at := (s.used + 8 + 7) &^ 7
	s.set(at-8, uint64(n))
	s.used = at + n*size
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
	s.set(s.counters[heapEntry].at+8, heapAtStart+uint64(n)*heapPerInterface)
	s.set(s.names-8, uint64(n))
	for _, name := range interfaceCounters {
		s.set(s.counters[name].at-8, uint64(n))
	}
}

func (s *segment) bump() {
	s.epoch++
	s.set(offEpoch, s.epoch)
}

// setInterface resets the counters of an index and then sets the name. A client that has read the new
// name therefore cannot read counters of the previous interface.
func (s *segment) setInterface(index uint32, name string) {
	for _, counter := range interfaceCounters {
		s.zero(counter, index)
	}
	s.rename(index, name)
}

// rename sets the name of an index. A deleted interface has the name "deleted" (vnet/interface/stats.c), and its
// counters remain until the index is assigned again.
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

// zero resets a counter. Indices beyond the capacity are not counted.
func (s *segment) zero(name string, index uint32) {
	if c := s.counters[name]; int(index) < c.capacity {
		for at := 0; at < c.size; at += 8 {
			s.set(c.at+int(index)*c.size+at, 0)
		}
	}
}

// add adds to the counter of an index: packets and, if the counter has them, bytes.
func (s *segment) add(name string, index uint32, amounts ...uint64) {
	c := s.counters[name]
	if int(index) >= c.capacity {
		return
	}
	for n, amount := range amounts {
		at := c.at + int(index)*c.size + 8*n
		s.set(at, s.get(at)+amount)
	}
}

// zeroPolicer resets the counters of a policer. If necessary, it extends the vectors.
func (s *segment) zeroPolicer(index uint32) {
	for _, name := range policed {
		if c := s.counters[name]; int(index) < c.capacity {
			s.set(c.at-8, max(s.get(c.at-8), uint64(index)+1))
			s.zero(name, index)
		}
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
