package statseg

import "fmt"

// TunnelCounters shows whether test frames arrived, and whether they arrived without fragmentation.
type TunnelCounters struct {
	// Rx and Tx count the frames that a tunnel has received and sent. VPP counts no sent frames of a GRE
	// tunnel.
	Rx, Tx uint64
	// Fragmented counts the fragments that the router has sent, and Reassembled the packets to the router
	// itself that it has reassembled. Both include packets of all senders. Tunnels' packets of IPv4 may
	// leave in fragments.
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

// orZero returns 0 for a counter that VPP does not have, because the event cannot happen there.
func orZero(count *uint64) uint64 {
	if count == nil {
		return 0
	}
	return *count
}
