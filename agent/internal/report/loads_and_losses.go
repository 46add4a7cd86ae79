package report

import (
	"math"
	"time"

	"longline.dev/agent/internal/statseg"
)

// Load is the traffic that an interface received and sent over the last interval (bit/s, with Ethernet
// headers, without preamble and inter-frame gap).
type Load struct{ RxBPS, TxBPS uint64 }

// Loads compares the last two readings of the counters of all interfaces.
type Loads struct{ before, last moment }

type moment struct {
	at      time.Time
	reading statseg.Reading
}

// take adds a reading, and forgets the reading before the last one.
func (l *Loads) take(at time.Time, reading statseg.Reading) {
	l.before, l.last = l.last, moment{at, reading}
}

// Of returns the load of the interface with this index and name in the VPP that started at bootMS. It returns
// false if the two readings have no reliable difference, because VPP restarted, another interface had the
// index, or a counter decreased.
func (l Loads) Of(bootMS int64, index uint32, name string) (Load, bool) {
	before, beforeOK := l.before.counts(bootMS, index, name)
	now, nowOK := l.last.counts(bootMS, index, name)
	over := l.last.at.Sub(l.before.at).Seconds()
	if !beforeOK || !nowOK || over <= 0 {
		return Load{}, false
	}
	rx, rxOK := difference(before.rx, now.rx)
	tx, txOK := difference(before.tx, now.tx)
	rate := func(c statseg.Count) uint64 { return uint64(math.Round(float64(c.Bytes) * 8 / over)) }
	return Load{rate(rx), rate(tx)}, rxOK && txOK
}

type counts struct{ rx, tx statseg.Count }

func (m *moment) counts(bootMS int64, index uint32, name string) (counts, bool) {
	r := &m.reading
	if r.BootMS != bootMS || int(index) >= min(len(r.Rx), len(r.Tx), len(r.Names)) || r.Names[index] != name {
		return counts{}, false
	}
	return counts{r.Rx[index], r.Tx[index]}, true
}

// Port is an interface that the agent did not create, towards the backbone or a customer: a port, or a
// sub-interface with addresses.
type Port struct {
	Index uint32
	Name  string
}

// PortCount has the numbers of frames that a port transferred and lost.
type PortCount struct {
	Name       string `json:"name"`
	Rx         uint64 `json:"rx_packets"`
	Tx         uint64 `json:"tx_packets"`
	Drops      uint64 `json:"drops"`
	RxMiss     uint64 `json:"rx_miss"`
	RxErrors   uint64 `json:"rx_errors"`
	RxNoBuffer uint64 `json:"rx_no_buffer"`
	TxErrors   uint64 `json:"tx_errors"`
}

func (c *PortCount) counters() [7]*uint64 {
	return [...]*uint64{&c.Rx, &c.Tx, &c.Drops, &c.RxMiss, &c.RxErrors, &c.RxNoBuffer, &c.TxErrors}
}

// Lost returns the number of frames that never reached VPP, or could not leave VPP because the link was down.
// It does not include drops, because VPP also drops frames on purpose, for example frames that a policer
// refuses or that no tunnel matches.
func (c PortCount) Lost() uint64 { return c.RxMiss + c.RxErrors + c.RxNoBuffer + c.TxErrors }

// RouterCount has the counters of the whole router. A counter is nil if this VPP does not have it.
type RouterCount struct {
	statseg.RouterErrors
	statseg.Buffers // at the end of the interval
}

// portCounts returns the differences between the last two readings, if both are from the VPP that started at
// bootMS. It omits a port if the name at its index has changed, or if one of its counters has decreased.
func (l Loads) portCounts(bootMS int64, ports []Port) (counts []PortCount) {
	for _, port := range ports {
		before, beforeOK := l.before.portCount(bootMS, port)
		now, nowOK := l.last.portCount(bootMS, port)
		if !beforeOK || !nowOK {
			continue
		}
		count, grew := PortCount{Name: port.Name}, true
		was, is := before.counters(), now.counters()
		for n, increase := range count.counters() {
			grew = grew && *is[n] >= *was[n]
			*increase = *is[n] - *was[n]
		}
		if grew {
			counts = append(counts, count)
		}
	}
	return counts
}

// portCount returns the counters of a port since VPP started. It returns false unless all counters of
// losses are known.
func (m *moment) portCount(bootMS int64, port Port) (PortCount, bool) {
	carried, known := m.counts(bootMS, port.Index, port.Name)
	l, i := m.reading.Losses, int(port.Index)
	if !known || i >= min(len(l.Drops), len(l.RxMiss), len(l.RxErrors), len(l.RxNoBuffer), len(l.TxErrors)) {
		return PortCount{}, false
	}
	return PortCount{
		port.Name, carried.rx.Packets, carried.tx.Packets,
		l.Drops[i], l.RxMiss[i], l.RxErrors[i], l.RxNoBuffer[i], l.TxErrors[i],
	}, true
}

// routerCount returns the differences between the last two readings. It returns nil unless both readings are
// from the VPP that started at bootMS.
func (l Loads) routerCount(bootMS int64) *RouterCount {
	before, now := l.before.reading, l.last.reading
	if before.BootMS != bootMS || now.BootMS != bootMS {
		return nil
	}
	return &RouterCount{
		statseg.RouterErrors{
			NoSuchTunnel:     grown(before.Errors.NoSuchTunnel, now.Errors.NoSuchTunnel),
			UnknownVLAN:      grown(before.Errors.UnknownVLAN, now.Errors.UnknownVLAN),
			FragmentsSent:    grown(before.Errors.FragmentsSent, now.Errors.FragmentsSent),
			Reassembled:      grown(before.Errors.Reassembled, now.Errors.Reassembled),
			ReassemblyFailed: grown(before.Errors.ReassemblyFailed, now.Errors.ReassemblyFailed),
		},
		now.Buffers,
	}
}

// grown returns the increase of a counter. It returns nil if before or now is unknown, or if the counter has
// decreased.
func grown(before, now *uint64) *uint64 {
	if before == nil || now == nil || *now < *before {
		return nil
	}
	return new(*now - *before)
}
