// Package report tells the portal what the router carries and looks like.
package report

import (
	"slices"
	"time"

	"go.fd.io/govpp/binapi/policer_types"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/packettrace"
	"longline.dev/agent/internal/statseg"
)

// Access is the customer's side of an end, as it was found in one run of VPP.
type Access struct {
	Key    intent.Key
	BootMS int64
	Index  uint32
	Name   string
	// Port is what a sub-interface is on; zero for a whole port.
	Port Port
	// VLAN is the port and the tags of the frames that a sub-interface takes; zero for a whole port.
	VLAN packettrace.VLAN
	// Made tells it from what had the index and the name before (see converge.ObservedState).
	Made int64
	// Policer is what holds it to a bandwidth profile; zero for nothing.
	Policer Policer
	// Tunnel is where the frames for the customer come from; zero for a local cross-connect.
	Tunnel Tunnel
}

// Tunnel is the far side of an end within the router, as it was found. Made is as that of an Access.
type Tunnel struct {
	Index uint32
	Name  string
	Made  int64
}

// View is what a reading is asked for: the customers' sides of ends and the ports, in one run of VPP.
type View struct {
	BootMS   int64
	Accesses []Access
	Ports    []Port
	// Tested are the ends that were tested at some moment since the last reading.
	Tested map[intent.Key]bool
	// Subs are all sub-interfaces by the index of their port, also those that the agent did not create.
	Subs map[uint32][]Port
}

// Policer is one with what it does: an update makes VPP count anew.
type Policer struct {
	Works  bool
	Index  uint32
	Config policer_types.PolicerConfig
}

// Colours is what a policer counted: what conforms and what exceeds was forwarded, what violates was not.
type Colours struct{ Conform, Exceed, Violate statseg.Count }

// EndCount is what one end carried: In is what the customer sent into the VLL (received on the access), Out
// what the VLL delivered (sent on the access). The access is where both are counted for every
// encapsulation; GRE TEB counts nothing it transmits on its tunnel.
type EndCount struct {
	Key     intent.Key
	In, Out statseg.Count
	// Policed is nil where no policer works, or where its counters tell nothing.
	Policed *Colours
	// Dropped are frames of In and Out that VPP dropped; nil where that is not known.
	Dropped Dropped
}

// Dropped are frames. In came from the customer and went no further, those that the policer dropped among them. Out
// came out of the tunnel and did not leave towards the customer; nil for a local cross-connect, whose other end has them, and
// for an interval in which the end was tested: VPP drops test frames there too, and counts them together.
type Dropped struct{ In, Out *uint64 }

// Sample covers FromMS < t <= ToMS of the agent's clock. An end or port without a trustworthy difference is not in
// it: a gap, never a zero.
type Sample struct {
	Seq          int64
	FromMS, ToMS int64
	Ends         []EndCount
	Ports        []PortCount
	Router       *RouterCount
}

// stalledAfter is how long VPP's heartbeat may stand still while nothing is counted either. Its collector runs every 10 s
// by default.
const stalledAfter = 35 * time.Second

// Sampler turns readings into differences.
type Sampler struct {
	seq    int64
	last   time.Time
	counts map[Access]EndCount // without their policers and tunnels
	police map[Access]Colours
	drops  map[dropped]uint64
	// apart are the drops of a tunnel while its end was tested: test frames, and none of the customer's.
	apart map[dropped]uint64
	loads Loads
	view  View // of the last reading

	sign   statseg.Reading // the last one that differed from the one before it
	signAt time.Time
}

// dropped is what counts drops: an interface as it was found in one run of VPP.
type dropped struct {
	boot int64
	Tunnel
}

// Take adds a reading, taken at that time, of what was in view. The sample is nil when there is no earlier
// reading to compare with, or nothing to say.
func (s *Sampler) Take(at time.Time, reading statseg.Reading, view View) *Sample {
	if s.livesOn(reading) {
		s.sign, s.signAt = reading, at
	}
	if at.Sub(s.signAt) > stalledAfter {
		s.Forget()
		return nil
	}
	s.loads.take(at, reading)
	now, colours, drops := make(map[Access]EndCount), make(map[Access]Colours), make(map[dropped]uint64)
	apart := make(map[dropped]uint64)
	dropsOf := func(place Tunnel) (total, since *uint64) {
		if place.Name == "" || int(place.Index) >= min(len(reading.Losses.Drops), len(reading.Names)) || reading.Names[place.Index] != place.Name {
			return nil, nil
		}
		key, count := dropped{reading.BootMS, place}, reading.Losses.Drops[place.Index]
		drops[key] = count
		if before, known := s.drops[key]; known {
			since = grown(&before, &count)
		}
		return &count, since
	}
	sample := &Sample{
		FromMS: s.last.UnixMilli(), ToMS: at.UnixMilli(),
		Ports: s.loads.portCounts(view.BootMS, view.Ports), Router: s.loads.routerCount(view.BootMS),
	}
	for _, access := range view.Accesses {
		if access.BootMS != reading.BootMS || int(access.Index) >= min(len(reading.Rx), len(reading.Tx), len(reading.Names)) {
			continue
		}
		if reading.Names[access.Index] != access.Name {
			continue // somebody else has the index since it was looked at
		}
		count := EndCount{Key: access.Key, In: reading.Rx[access.Index], Out: reading.Tx[access.Index], Policed: access.Policer.read(reading)}
		var lost Dropped
		count.Dropped.In, lost.In = dropsOf(Tunnel{access.Index, access.Name, access.Made})
		count.Dropped.Out, lost.Out = dropsOf(access.Tunnel)
		if count.Dropped.Out != nil {
			tunnel := dropped{reading.BootMS, access.Tunnel}
			others := s.apart[tunnel]
			switch _, read := s.drops[tunnel]; {
			case !view.Tested[access.Key]:
			case !read:
				others = *count.Dropped.Out
			case lost.Out != nil:
				others, lost.Out = others+*lost.Out, nil
			}
			if others > 0 && others <= *count.Dropped.Out {
				apart[tunnel] = others
				customers := *count.Dropped.Out - others
				count.Dropped.Out = &customers
			}
		}
		place := access
		place.Policer, place.Tunnel = Policer{}, Tunnel{}
		now[place] = count
		var policed *Colours
		if count.Policed != nil {
			colours[access] = *count.Policed
			if before, known := s.police[access]; known {
				policed = before.until(*count.Policed)
			}
		}
		before, known := s.counts[place]
		in, inOK := difference(before.In, count.In)
		out, outOK := difference(before.Out, count.Out)
		if known && inOK && outOK {
			sample.Ends = append(sample.Ends, EndCount{access.Key, in, out, policed, lost})
		}
	}
	s.counts, s.police, s.drops, s.apart, s.view, s.last = now, colours, drops, apart, view, at
	if len(sample.Ends) == 0 && len(sample.Ports) == 0 {
		return nil
	}
	slices.SortFunc(sample.Ends, func(a, b EndCount) int { return a.Key.Compare(b.Key) })
	s.seq++
	sample.Seq = s.seq
	return sample
}

// TakeUnanswered is Take while VPP does not answer. It may be dead, and then its segment stays readable and as it was:
// nothing is said where nothing moves. Its main thread may be busy, and then its workers go on counting, and the first
// reading that shows it covers all since the last one.
func (s *Sampler) TakeUnanswered(at time.Time, reading statseg.Reading, view View) *Sample {
	if s.livesOn(reading) {
		return s.Take(at, reading, view)
	}
	if at.Sub(s.signAt) > stalledAfter {
		s.Forget()
	}
	return nil
}

// livesOn reports whether something has moved: a dead VPP's segment is frozen.
func (s *Sampler) livesOn(reading statseg.Reading) bool {
	return s.signAt.IsZero() || reading.Heartbeat != s.sign.Heartbeat ||
		!slices.Equal(reading.Rx, s.sign.Rx) || !slices.Equal(reading.Tx, s.sign.Tx)
}

// Forget starts anew: the next reading is compared with nothing.
func (s *Sampler) Forget() {
	s.counts, s.police, s.drops, s.loads, s.view = nil, nil, nil, Loads{}, View{}
}

// Loads are those of the last two readings.
func (s *Sampler) Loads() Loads { return s.loads }

// Totals are the counters as last read, sorted by end.
func (s *Sampler) Totals() []EndCount {
	var totals []EndCount
	for _, c := range s.counts {
		totals = append(totals, c)
	}
	slices.SortFunc(totals, func(a, b EndCount) int { return a.Key.Compare(b.Key) })
	return totals
}

// LossTotals are the counters of ports and router as last read, since VPP started; the router's is nil before that.
func (s *Sampler) LossTotals() (ports []PortCount, router *RouterCount) {
	for _, port := range s.view.Ports {
		if count, known := s.loads.last.portCount(s.view.BootMS, port); known {
			ports = append(ports, count)
		}
	}
	if last := s.loads.last.reading; s.view.BootMS != 0 && last.BootMS == s.view.BootMS {
		router = &RouterCount{last.Errors, last.Buffers}
	}
	return ports, router
}

// read is what the policer has counted, nil when none works or it is not counted yet.
func (p Policer) read(r statseg.Reading) *Colours {
	if !p.Works || int(p.Index) >= min(len(r.Conform), len(r.Exceed), len(r.Violate)) {
		return nil
	}
	return &Colours{r.Conform[p.Index], r.Exceed[p.Index], r.Violate[p.Index]}
}

// until is what was counted from then to now, nil when a counter went back.
func (c Colours) until(now Colours) *Colours {
	conform, conformOK := difference(c.Conform, now.Conform)
	exceed, exceedOK := difference(c.Exceed, now.Exceed)
	violate, violateOK := difference(c.Violate, now.Violate)
	if !conformOK || !exceedOK || !violateOK {
		return nil
	}
	return &Colours{conform, exceed, violate}
}

func difference(before, now statseg.Count) (statseg.Count, bool) {
	ok := now.Packets >= before.Packets && now.Bytes >= before.Bytes
	return statseg.Count{Packets: now.Packets - before.Packets, Bytes: now.Bytes - before.Bytes}, ok
}
