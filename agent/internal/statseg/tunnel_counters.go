package statseg

import "fmt"

// TunnelCounters are what tells whether test frames arrived, and whether they did so in one piece.
type TunnelCounters struct {
	// Rx and Tx are the frames that a tunnel has received and sent. A GRE tunnel of VPP counts none as sent.
	Rx, Tx uint64
	// Fragmented are the fragments that the router has sent, Reassembled the packets to itself that it has put
	// together: all of them, whoever sent them. Tunnels' packets of IPv4 may leave in fragments.
	Fragmented, Reassembled uint64
}

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
		counters = TunnelCounters{
			Rx: reading.Rx[m].Packets, Tx: reading.Tx[m].Packets,
			Fragmented: orNone(reading.Errors.FragmentsSent), Reassembled: orNone(reading.Errors.Reassembled),
		}
		return reading.BootMS, nil
	})
	return counters, err
}

// orNone: what VPP has no counter for does not happen there.
func orNone(count *uint64) uint64 {
	if count == nil {
		return 0
	}
	return *count
}
