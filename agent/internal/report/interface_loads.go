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
