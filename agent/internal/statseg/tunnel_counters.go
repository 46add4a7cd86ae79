package statseg

import "fmt"

// TunnelCounters shows whether test frames arrived, and whether they arrived without fragmentation.
type TunnelCounters struct {
	// Rx and Tx count the frames that a tunnel has received and sent. VPP does not count the frames that a GRE
	// tunnel sends.
	Rx, Tx uint64
	// Fragmented counts the fragments that the router has sent. Reassembled counts the packets that were
	// addressed to the router and that it has reassembled. Both numbers include the packets of all tunnels
	// and programs. The IPv4 packets of a tunnel may be sent in fragments.
	Fragmented, Reassembled uint64
}

// TunnelCounters returns the counters of the tunnel with this index and name in the VPP that started at
// bootMS.
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
		counters = TunnelCounters{
			Rx: reading.Rx[m].Packets, Tx: reading.Tx[m].Packets,
			Fragmented: orZero(reading.Errors.FragmentsSent), Reassembled: orZero(reading.Errors.Reassembled),
		}
		return reading.BootMS, nil
	})
	return counters, err
}

// orZero returns the value of a counter. It returns 0 for a counter that VPP does not have, because the
// counted event cannot happen in that VPP.
func orZero(count *uint64) uint64 {
	if count == nil {
		return 0
	}
	return *count
}
