package vppsim

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"go.fd.io/govpp/binapi/interface_types"
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

// The counters about losses, as in VPP: counters of lost frames for each interface, counters for each kind of
// error, and the use of buffers.

// interfaceLosses are the counters of single interfaces. They are indexed by sw_if_index.
var interfaceLosses = []string{"/if/drops", "/if/rx-no-buf", "/if/rx-miss", "/if/rx-error", "/if/tx-error"}

var interfaceCounters = append([]string{received, sent}, interfaceLosses...)

// errorVector contains all error counters. The name of an error refers to one of its elements
// (vlib_register_errors in vlib/error.c).
const errorVector = "/node/errors"

const (
	fragmentSent4  = "/err/ip4-frag/fragment_sent"
	fragmentSent6  = "/err/ip6-frag/fragment_sent"
	reassembled4   = "/err/ip4-local-full-reassembly/reass_success"
	reassembled6   = "/err/ip6-local-full-reassembly/reass_success"
	tooManyPieces4 = "/err/ip4-local-full-reassembly/reass_fragment_chain_too_long"
	noVXLAN4       = "/err/vxlan4-input/no such tunnel packets"
	noVXLAN6       = "/err/vxlan6-input/no such tunnel packets"
	noGENEVE4      = "/err/geneve4-input/no such tunnel packets"
	noGENEVE6      = "/err/geneve6-input/no such tunnel packets"
	noGRE4         = "/err/gre4-input/GRE input packets dropped due to missing tunnel"
	noGRE6         = "/err/gre6-input/GRE input packets dropped due to missing tunnel"
	unknownVLAN    = "/err/ethernet-input/unknown vlan"
)

var errorNames = []string{
	fragmentSent4, fragmentSent6, reassembled4, reassembled6, tooManyPieces4,
	"/err/ip6-local-full-reassembly/reass_fragment_chain_too_long",
	"/err/ip4-local-full-reassembly/reass_limit_reached", "/err/ip6-local-full-reassembly/reass_limit_reached",
	"/err/ip4-local-full-reassembly/reass_no_buf", "/err/ip6-local-full-reassembly/reass_no_buf",
	"/err/ip4-local-full-reassembly/reass_timeout", "/err/ip6-local-full-reassembly/reass_timeout",
	noVXLAN4, noVXLAN6, noGENEVE4, noGENEVE6, noGRE4, noGRE6, unknownVLAN,
}

// The counters of the only pool of buffers.
const (
	poolCached    = "/buffer-pools/default-numa-0/cached"
	poolUsed      = "/buffer-pools/default-numa-0/used"
	poolAvailable = "/buffer-pools/default-numa-0/available"
	// buffers is the number of buffers per NUMA node by VPP's default (`buffers { buffers-per-numa }`).
	buffers = 16384
)

func lossDirectory() (entries []directoryEntry) {
	for _, name := range interfaceLosses {
		entries = append(entries, directoryEntry{name, typeSimple, maxInterfaces})
	}
	entries = append(entries, directoryEntry{errorVector, typeSimple, 2 * len(errorNames)})
	for _, name := range errorNames {
		entries = append(entries, directoryEntry{name, typeSymlink, 0})
	}
	for _, name := range []string{poolCached, poolUsed, poolAvailable} {
		entries = append(entries, directoryEntry{name, typeGauge, 0})
	}
	return entries
}

// layOutErrors lays out the error counters. They have different positions in each run of the stand-in, as in VPPs
// with different plugins.
func (s *segment) layOutErrors() {
	for n, place := range rand.Perm(2 * len(errorNames))[:len(errorNames)] {
		s.set(s.places[errorNames[n]], uint64(s.numbers[errorVector])|uint64(place)<<32)
		s.errors[errorNames[n]] = uint32(place)
	}
}

// countError adds packets to an error counter.
func (s *segment) countError(name string, packets uint64) {
	s.add(errorVector, s.errors[name], packets)
}

func (s *segment) useBuffers(used uint64) {
	s.set(s.places[poolUsed], used)
	s.set(s.places[poolAvailable], buffers-used)
}

// countOn adds packets and, if the counter has them, bytes to a counter of an interface. If it is a sub-interface,
// countOn also adds them to the counter of the port.
func (v *vpp) countOn(counter string, i *iface, amounts ...uint64) {
	v.segment.add(counter, i.index, amounts...)
	if i.isSub() {
		v.segment.add(counter, i.sup, amounts...)
	}
}

// drop counts received frames that are not forwarded.
func (v *vpp) drop(i *iface, packets uint64) { v.countOn("/if/drops", i, packets) }

// Lose makes an interface lose frames. counter is "drops", "rx-miss", "rx-error", "rx-no-buf" or
// "tx-error".
func (s *Sim) Lose(name, counter string, packets uint64) error {
	return s.inspect(func(v *vpp) error {
		i := v.named(name)
		if i == nil || !slices.Contains(interfaceLosses, "/if/"+counter) {
			return fmt.Errorf("%s counts no %s", name, counter)
		}
		if counter == "drops" {
			v.drop(i, packets)
		} else {
			v.segment.add("/if/"+counter, i.index, packets)
		}
		return nil
	})
}

// UseBuffers sets how many of the 16,384 buffers are in use.
func (s *Sim) UseBuffers(used uint64) error {
	return s.inspect(func(v *vpp) error { v.segment.useBuffers(min(used, buffers)); return nil })
}

// noSuchTunnel counts packets for a tunnel that does not exist. It also counts them on the interface that
// received them. A configured route names no interface, so its packets are counted on the first port.
func (v *vpp) noSuchTunnel(f frames) {
	name, known := map[string]string{
		"vxlan4": noVXLAN4, "vxlan6": noVXLAN6, "geneve4": noGENEVE4, "geneve6": noGENEVE6, "gre4": noGRE4, "gre6": noGRE6,
	}[fmt.Sprint(f.Encapsulation, f.Family)]
	if !known {
		return
	}
	v.segment.countError(name, uint64(f.Count))
	via := v.fib().lookup(0, f.Source).via
	if via == none {
		via = 1
	}
	if i := v.at(interface_types.InterfaceIndex(via)); i != nil {
		v.drop(i, uint64(f.Count))
	}
}
