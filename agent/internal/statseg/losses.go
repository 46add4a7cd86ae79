package statseg

import (
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
