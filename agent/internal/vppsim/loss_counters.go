package vppsim

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"go.fd.io/govpp/binapi/interface_types"
)

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

// drop counts received frames that are not forwarded. If they belong to a sub-interface, drop also counts
// them on the port.
func (v *vpp) drop(i *iface, packets uint64) {
	v.segment.add("/if/drops", i.index, packets)
	if i.isSub() {
		v.segment.add("/if/drops", i.sup, packets)
	}
}

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
