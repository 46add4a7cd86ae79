package statseg

import (
	"path"
	"strings"

	"go.fd.io/govpp/adapter"
)

// InterfaceLosses are frames by sw_if_index, summed over threads; empty where VPP does not count them. Counters of a
// port have those of its sub-interfaces in them (process_drop_punt in vnet/interface_output.c).
type InterfaceLosses struct {
	// Drops came in there and were dropped anywhere in VPP, those that a policer dropped among them.
	Drops []uint64
	// RxMiss and RxErrors are lost by the card, RxNoBuffer for want of a buffer, TxErrors on the way out.
	RxMiss, RxErrors, RxNoBuffer, TxErrors []uint64
}

// RouterErrors are packets; nil where VPP has no such counter, as when a plugin is not loaded.
type RouterErrors struct {
	// NoSuchTunnel came encapsulated, for a tunnel that this router does not have.
	NoSuchTunnel *uint64
	// UnknownVLAN came to a port that has no sub-interface for their VLAN.
	UnknownVLAN *uint64
	// FragmentsSent are those that leave, Reassembled the packets to the router itself that it has put together, and
	// ReassemblyFailed those that it could not. Tunnels' packets of IPv4 may travel in fragments.
	FragmentsSent, Reassembled, ReassemblyFailed *uint64
}

// Buffers are those of all pools, as VPP looked at them last (every update-interval, by default 10 s). Total is 0 where
// it does not say; from 26.02 on it says so in gauges, of which govpp 0.13 knows nothing.
type Buffers struct{ Total, Free uint64 }

const (
	dropsEntry      = "/if/drops"
	rxMissEntry     = "/if/rx-miss"
	rxErrorsEntry   = "/if/rx-error"
	rxNoBufferEntry = "/if/rx-no-buf"
	txErrorsEntry   = "/if/tx-error"

	// poolsFolder has three entries for each pool, whose names depend on the machine (vlib/buffer.c).
	poolsFolder  = "/buffer-pools/"
	poolsPattern = poolsFolder + ".+/(?:used|cached|available)"
)

// errorGroups are the error counters that are added up. VPP names one by its node and its own text
// (vlib_register_errors in vlib/error.c, 23.10 to 26.06); the index behind a name is another one in each run.
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

// groupOf is the place in errorGroups of each name.
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

// lossEntries are the entries of the directory whose names are the same everywhere.
func lossEntries() []string {
	names := []string{dropsEntry, rxMissEntry, rxErrorsEntry, rxNoBufferEntry, txErrorsEntry}
	for _, group := range errorGroups {
		names = append(names, group.names...)
	}
	return names
}

// addSimple takes in a vector of single counters.
func (r *Reading) addSimple(name string, threads adapter.SimpleCounterStat) {
	switch name {
	case dropsEntry:
		r.Losses.Drops = perIndex(threads)
	case rxMissEntry:
		r.Losses.RxMiss = perIndex(threads)
	case rxErrorsEntry:
		r.Losses.RxErrors = perIndex(threads)
	case rxNoBufferEntry:
		r.Losses.RxNoBuffer = perIndex(threads)
	case txErrorsEntry:
		r.Losses.TxErrors = perIndex(threads)
	default:
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
}

// addPool takes in one of the figures of a buffer pool. What threads have cached is free too.
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
