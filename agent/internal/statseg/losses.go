package statseg

import (
	"fmt"
	"math"
	"path"
	"strings"

	"go.fd.io/govpp/adapter"
)

// InterfaceLosses has the numbers of frames by sw_if_index, summed over threads. A vector is empty if VPP
// does not count these frames. The counters of a port include its sub-interfaces (process_drop_punt in
// vnet/interface_output.c).
type InterfaceLosses struct {
	// Drops counts frames that arrived on the interface and that VPP dropped for any reason, for example by a
	// policer.
	Drops []uint64
	// RxMiss and RxErrors count frames that the network card lost. RxNoBuffer counts frames for which no buffer
	// was free. TxErrors counts frames that were lost on transmission.
	RxMiss, RxErrors, RxNoBuffer, TxErrors []uint64
}

// RouterErrors has counters of packets for the whole router. A counter is nil if VPP does not have it, for
// example because a plugin is not loaded.
type RouterErrors struct {
	// NoSuchTunnel counts encapsulated packets for a tunnel that this router does not have.
	NoSuchTunnel *uint64
	// UnknownVLAN counts frames that arrived on a port without a sub-interface for their VLAN.
	UnknownVLAN *uint64
	// FragmentsSent counts fragments that the router sent. Reassembled and ReassemblyFailed count packets to the
	// router itself. The IPv4 packets of a tunnel may be sent in fragments.
	FragmentsSent, Reassembled, ReassemblyFailed *uint64
}

// Buffers sums the buffers of all pools. VPP updates the figures every update-interval, by default 10 s.
// Total is 0 if VPP does not report the figures. From 26.02 on, VPP reports the figures as gauges, which
// govpp 0.13 cannot read.
type Buffers struct{ Total, Free uint64 }

const (
	// poolsFolder contains three entries for each pool. The pools' names depend on the machine
	// (vlib/buffer.c).
	poolsFolder  = "/buffer-pools/"
	poolsPattern = poolsFolder + ".+/(?:used|cached|available)"
)

// errorGroups has a group of counters for each field of RouterErrors. The field is the sum of these counters.
// The name of a counter consists of a node's name and a text (vlib_register_errors in vlib/error.c, 23.10 to
// 26.06). The counter's index differs between runs of VPP.
var errorGroups = [...]struct {
	field func(*RouterErrors) **uint64
	names []string
}{
	{func(e *RouterErrors) **uint64 { return &e.NoSuchTunnel }, []string{
		"/err/vxlan4-input/no such tunnel packets", "/err/vxlan6-input/no such tunnel packets",
		"/err/geneve4-input/no such tunnel packets", "/err/geneve6-input/no such tunnel packets",
		"/err/gre4-input/GRE input packets dropped due to missing tunnel",
		"/err/gre6-input/GRE input packets dropped due to missing tunnel",
	}},
	{func(e *RouterErrors) **uint64 { return &e.UnknownVLAN }, []string{"/err/ethernet-input/unknown vlan"}},
	{func(e *RouterErrors) **uint64 { return &e.FragmentsSent }, []string{
		"/err/ip4-frag/fragment_sent", "/err/ip6-frag/fragment_sent",
	}},
	{func(e *RouterErrors) **uint64 { return &e.Reassembled }, []string{
		"/err/ip4-local-full-reassembly/reass_success", "/err/ip6-local-full-reassembly/reass_success",
	}},
	{func(e *RouterErrors) **uint64 { return &e.ReassemblyFailed }, reassemblyFailures()},
}

// groupOf maps each name to its position in errorGroups.
var groupOf = func() map[string]int {
	groups := make(map[string]int)
	for place, group := range errorGroups {
		for _, name := range group.names {
			groups[name] = place
		}
	}
	return groups
}()

func reassemblyFailures() (names []string) {
	for _, node := range []string{"ip4-local-full-reassembly", "ip6-local-full-reassembly"} {
		for _, why := range []string{"limit_reached", "fragment_chain_too_long", "no_buf", "timeout"} {
			names = append(names, "/err/"+node+"/reass_"+why)
		}
	}
	return names
}

// lossEntries returns the names of the entries for losses, except the buffer pools, whose names depend on the
// machine.
func lossEntries() []string {
	var names []string
	for _, loss := range interfaceLosses {
		names = append(names, loss.name)
	}
	for _, group := range errorGroups {
		names = append(names, group.names...)
	}
	return names
}

// addSimple adds a vector of single counters to the reading.
func (r *Reading) addSimple(name string, threads adapter.SimpleCounterStat) {
	for _, loss := range interfaceLosses {
		if loss.name == name {
			*loss.field(&r.Losses) = perIndex(threads)
			return
		}
	}
	if place, known := groupOf[name]; known {
		sum := errorGroups[place].field(&r.Errors)
		if *sum == nil {
			*sum = new(uint64)
		}
		for _, count := range perIndex(threads) {
			**sum += count
		}
	}
}

// interfaceLosses has the entry of each loss of interfaces.
var interfaceLosses = [...]struct {
	name  string
	field func(*InterfaceLosses) *[]uint64
}{
	{"/if/drops", func(l *InterfaceLosses) *[]uint64 { return &l.Drops }},
	{"/if/rx-miss", func(l *InterfaceLosses) *[]uint64 { return &l.RxMiss }},
	{"/if/rx-error", func(l *InterfaceLosses) *[]uint64 { return &l.RxErrors }},
	{"/if/rx-no-buf", func(l *InterfaceLosses) *[]uint64 { return &l.RxNoBuffer }},
	{"/if/tx-error", func(l *InterfaceLosses) *[]uint64 { return &l.TxErrors }},
}

// addPool adds one figure of a buffer pool. Buffers in the caches of threads count as free.
func (b *Buffers) addPool(name string, buffers uint64) {
	b.Total += buffers
	if path.Base(name) != "used" {
		b.Free += buffers
	}
}

func isPool(name string) bool { return strings.HasPrefix(name, poolsFolder) }

func perIndex(threads adapter.SimpleCounterStat) []uint64 {
	var counts []uint64
	for _, thread := range threads {
		if len(thread) > len(counts) {
			counts = append(counts, make([]uint64, len(thread)-len(counts))...)
		}
		for i, c := range thread {
			counts[i] += uint64(c)
		}
	}
	return counts
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
