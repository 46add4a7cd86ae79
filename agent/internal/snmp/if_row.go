package snmp

import (
	"strings"
	"time"

	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/statseg"
)

// row is one interface. Its ifIndex is sw_if_index + 1, because an ifIndex is greater than zero.
type row struct {
	*observe.Interface
	kind       kind
	port       *observe.Interface // the port of a sub-interface; otherwise the interface itself
	alias      string
	oper       operStatus
	counts     *counts // nil if unknown
	continuous time.Time
}

// counts has the counters of an interface. A counter is nil if VPP does not have it.
type counts struct {
	in, out                       statseg.Count
	inDiscards, inErrors, outLost *uint64
}

func (r *row) ifIndex() uint32 { return r.Index + 1 }

// kind is an IANAifType.
type kind int32

const (
	other            kind = 1
	ethernetCsmacd   kind = 6
	softwareLoopback kind = 24
	tunnel           kind = 131
	l2vlan           kind = 135
	ieee8023adLag    kind = 161
)

func kindOf(i *observe.Interface, s *observe.Snapshot) kind {
	switch {
	case i.IsSub():
		return l2vlan
	case s.TunnelAt(i.Index) != nil, strings.Contains(i.Device, "tunnel"):
		return tunnel
	case i.Device == "Loopback":
		return softwareLoopback
	case i.Device == "bond":
		return ieee8023adLag
	case i.MAC == [6]byte{}:
		return other // local0 and interfaces without Ethernet
	}
	return ethernetCsmacd
}

// operStatus is ifOperStatus.
type operStatus int32

const (
	operUp             operStatus = 1
	operDown           operStatus = 2
	operUnknown        operStatus = 4
	operLowerLayerDown operStatus = 7
)

func operStatusOf(i, port *observe.Interface) operStatus {
	switch {
	case !i.AdminUp:
		return operDown
	case i.IsSub() && !(port.AdminUp && port.LinkUp):
		return operLowerLayerDown
	case !i.LinkUp:
		return operDown
	}
	return operUp
}

// countsOf returns the counters of an interface. VPP reuses indices, so countsOf returns nil if the counters
// at the index are missing or belong to another interface.
func countsOf(i *observe.Interface, r *statseg.Reading) *counts {
	at := int(i.Index)
	if at >= min(len(r.Rx), len(r.Tx), len(r.Names)) || r.Names[at] != i.Name {
		return nil
	}
	l := &r.Losses
	return &counts{
		in: r.Rx[at], out: r.Tx[at],
		inDiscards: sumAt(at, l.Drops, l.RxMiss, l.RxNoBuffer), inErrors: sumAt(at, l.RxErrors), outLost: sumAt(at, l.TxErrors),
	}
}

// sumAt returns the sum of the counters at this index, or nil if one of the vectors has no such counter.
func sumAt(at int, vectors ...[]uint64) *uint64 {
	sum := new(uint64)
	for _, v := range vectors {
		if at >= len(v) {
			return nil
		}
		*sum += v[at]
	}
	return sum
}

// wentBack reports whether any counter in c is lower than in before. In this case the counters were cleared,
// or belong to another interface.
func (c *counts) wentBack(before *counts) bool {
	less := func(now, before *uint64) bool { return now != nil && before != nil && *now < *before }
	return c.in.Packets < before.in.Packets || c.in.Bytes < before.in.Bytes || c.out.Packets < before.out.Packets || c.out.Bytes < before.out.Bytes ||
		less(c.inDiscards, before.inDiscards) || less(c.inErrors, before.inErrors) || less(c.outLost, before.outLost)
}
