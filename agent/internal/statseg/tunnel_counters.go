package statseg

import (
	"fmt"

	"go.fd.io/govpp/adapter"
)

// TunnelCounters are what tells whether test frames arrived, and whether they did so in one piece.
type TunnelCounters struct {
	// Rx and Tx are the frames that a tunnel has received and sent. A GRE tunnel of VPP counts none as sent.
	Rx, Tx uint64
	// Fragmented are the fragments that the router has sent, Reassembled the packets to itself that it has put
	// together: all of them, whoever sent them. Tunnels' packets of IPv4 may leave in fragments.
	Fragmented, Reassembled uint64
}

var (
	// VPP names an error counter by its node (vlib_register_errors in vlib/error.c).
	fragmented  = []string{"/err/ip4-frag/fragment_sent", "/err/ip6-frag/fragment_sent"}
	reassembled = []string{"/err/ip4-local-full-reassembly/reass_success", "/err/ip6-local-full-reassembly/reass_success"}
)

// TunnelCounters are those of the tunnel with this index and name in the VPP that started at bootMS.
func (r *ReopeningSegment) TunnelCounters(bootMS int64, index uint32, name string) (counters TunnelCounters, err error) {
	err = r.readFrom(bootMS, func(s *Segment) (int64, error) {
		reading, err := s.Read()
		if err != nil {
			return 0, err
		}
		m := int(index)
		if m >= min(len(reading.Rx), len(reading.Tx), len(reading.Names)) || reading.Names[m] != name {
			return 0, fmt.Errorf("read stats segment: it does not count for %s (sw_if_index %d)", name, index)
		}
		counters = TunnelCounters{Rx: reading.Rx[m].Packets, Tx: reading.Tx[m].Packets}
		if counters.Fragmented, err = s.total(fragmented); err == nil {
			counters.Reassembled, err = s.total(reassembled)
		}
		return reading.BootMS, err
	})
	return counters, err
}

// total adds up counters, over threads too. One that VPP does not have counts nothing.
func (s *Segment) total(names []string) (total uint64, err error) {
	entries, err := s.entries(names...)
	for _, entry := range entries {
		if threads, ok := entry.Data.(adapter.SimpleCounterStat); ok {
			for _, thread := range threads {
				for _, count := range thread {
					total += uint64(count)
				}
			}
		}
	}
	return total, err
}
