// Package report sends the router's state, counters and events to the portal.
package report

import (
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.fd.io/govpp/binapi/policer_types"
	"golang.org/x/sys/unix"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/packettrace"
	"longline.dev/agent/internal/statseg"
)

// Access is the customer's side of an end, as observed in one run of VPP.
type Access struct {
	Key    intent.Key
	BootMS int64
	Index  uint32
	Name   string
	// Port is the port of a sub-interface. It is zero for a whole port.
	Port Port
	// VLAN is the port and the tags of the frames that a sub-interface takes. It is zero for a whole port.
	VLAN packettrace.VLAN
	// Made distinguishes the interface from an earlier interface with the same index and name (see
	// converge.ObservedState).
	Made int64
	// Policer enforces the end's bandwidth profile. It is zero if there is no policer.
	Policer Policer
	// Tunnel is the tunnel that delivers the frames for the customer. It is zero for a local cross-connect.
	Tunnel Tunnel
}

// Tunnel is the backbone side of an end within the router, as observed. Made has the same meaning as in
// Access.
type Tunnel struct {
	Index uint32
	Name  string
	Made  int64
}

// View has the interfaces to count in one run of VPP: the customer's side of each end, and the ports.
type View struct {
	BootMS   int64
	Accesses []Access
	Ports    []Port
	// Tested are the ends that were tested at any time since the last reading.
	Tested map[intent.Key]bool
	// Subs are all sub-interfaces by the index of their port, including sub-interfaces that the agent did not
	// create.
	Subs map[uint32][]Port
}

// Policer is a policer with its settings. VPP resets a policer's counters when it updates the policer. So a
// policer with other settings counts as another policer.
type Policer struct {
	Works  bool
	Index  uint32
	Config policer_types.PolicerConfig
}

// Colours are the counters of a policer: conforming and exceeding frames were forwarded, violating frames
// were dropped.
type Colours struct{ Conform, Exceed, Violate statseg.Count }

// EndCount is the traffic of one end. In is the traffic that the customer sent into the VLL (received on the
// access). Out is the traffic that the VLL delivered to the customer (sent on the access). Both are counted
// on the access for every encapsulation, because VPP does not count transmitted frames on a GRE TEB tunnel.
type EndCount struct {
	Key     intent.Key
	In, Out statseg.Count
	// Policed is nil if no policer works, or if its counters have no meaning.
	Policed *Colours
	// Dropped are the frames that VPP dropped in each direction. A number is nil if it is unknown.
	Dropped Dropped
}

// Dropped counts frames. In are frames from the customer that were not forwarded, including frames that the
// policer dropped. Out are frames from the tunnel that were not sent to the customer. Out is nil for a local
// cross-connect, because the other end counts these frames. Out is also nil for an interval in which the end
// was tested, because VPP also drops the test frames of the tunnel and counts them together with the other
// frames.
type Dropped struct{ In, Out *uint64 }

// Sample contains the traffic in the interval FromMS < t <= ToMS of the router's wall clock (Unix time in ms),
// which is the interval from FromUptimeMS to ToUptimeMS of the router's uptime. If the readings of an end or a
// port have no reliable difference, Sample omits the end or port. It never contains zeros instead.
type Sample struct {
	Seq                      int64
	FromMS, ToMS             int64
	FromUptimeMS, ToUptimeMS int64
	Ends                     []EndCount
	Ports                    []PortCount
	Router                   *RouterCount
}

// stalledAfter is a time. If neither VPP's heartbeat nor a counter has changed for this time, VPP counts as
// stalled. By default, VPP's collector runs every 10 s.
const stalledAfter = 35 * time.Second

// Sampler computes the differences between readings.
type Sampler struct {
	seq    int64
	last   time.Time
	uptime int64               // at the time last (ms)
	counts map[Access]EndCount // the keys have no policers and tunnels
	police map[Access]Colours
	drops  map[dropped]uint64
	// apart counts the frames that VPP dropped on a tunnel while the tunnel's end was tested. These frames
	// are test frames and not frames of the customer.
	apart map[dropped]uint64
	loads Loads
	view  View // of the last reading

	sign   statseg.Reading // the last reading that differed from the reading before it
	signAt time.Time
}

// dropped identifies a counter of drops: an interface as observed in one run of VPP.
type dropped struct {
	boot int64
	Tunnel
}

// Take adds a reading of the interfaces in view. The reading was made at the time at. The sample is nil if
// there is no earlier reading to compare with, or nothing to report.
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
		FromMS: s.last.UnixMilli(), ToMS: at.UnixMilli(), FromUptimeMS: s.uptime, ToUptimeMS: uptimeAt(at),
		Ports: s.loads.portCounts(view.BootMS, view.Ports), Router: s.loads.routerCount(view.BootMS),
	}
	for _, access := range view.Accesses {
		if access.BootMS != reading.BootMS || int(access.Index) >= min(len(reading.Rx), len(reading.Tx), len(reading.Names)) {
			continue
		}
		if reading.Names[access.Index] != access.Name {
			continue // another interface has got the index since the observation
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
				count.Dropped.Out = new(*count.Dropped.Out - others)
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
	s.counts, s.police, s.drops, s.apart, s.view = now, colours, drops, apart, view
	s.last, s.uptime = at, sample.ToUptimeMS
	if len(sample.Ends) == 0 && len(sample.Ports) == 0 {
		return nil
	}
	slices.SortFunc(sample.Ends, func(a, b EndCount) int { return a.Key.Compare(b.Key) })
	s.seq++
	sample.Seq = s.seq
	return sample
}

// TakeUnanswered does the same as Take while VPP does not respond. If VPP is dead, its segment stays readable
// and does not change, and there is no sample. If only VPP's main thread is busy, its workers continue to
// count. In this case, the sample of the first reading that shows a change covers the whole time since the
// last sample.
func (s *Sampler) TakeUnanswered(at time.Time, reading statseg.Reading, view View) *Sample {
	if s.livesOn(reading) {
		return s.Take(at, reading, view)
	}
	if at.Sub(s.signAt) > stalledAfter {
		s.Forget()
	}
	return nil
}

// livesOn reports whether the heartbeat or a counter of traffic has changed since the reading sign. The
// segment of a dead VPP never changes. For the first reading, livesOn returns true.
func (s *Sampler) livesOn(reading statseg.Reading) bool {
	return s.signAt.IsZero() || reading.Heartbeat != s.sign.Heartbeat ||
		!slices.Equal(reading.Rx, s.sign.Rx) || !slices.Equal(reading.Tx, s.sign.Tx)
}

// Forget restarts the sampler: the next reading is not compared with earlier readings.
func (s *Sampler) Forget() {
	s.counts, s.police, s.drops, s.loads, s.view = nil, nil, nil, Loads{}, View{}
}

// Loads returns the loads between the last two readings.
func (s *Sampler) Loads() Loads { return s.loads }

// Totals returns the counters as last read, sorted by end.
func (s *Sampler) Totals() []EndCount {
	var totals []EndCount
	for _, c := range s.counts {
		totals = append(totals, c)
	}
	slices.SortFunc(totals, func(a, b EndCount) int { return a.Key.Compare(b.Key) })
	return totals
}

// LossTotals returns the counters of losses since VPP started, for the ports and for the whole router, as
// last read. router is nil before the first reading.
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

// read returns the policer's counters, or nil if no policer works or VPP does not count it yet.
func (p Policer) read(r statseg.Reading) *Colours {
	if !p.Works || int(p.Index) >= min(len(r.Conform), len(r.Exceed), len(r.Violate)) {
		return nil
	}
	return &Colours{r.Conform[p.Index], r.Exceed[p.Index], r.Violate[p.Index]}
}

// until returns the increase from c to now, or nil if a counter decreased.
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

// kernelBoot returns the ID of the current run of the router's kernel.
var kernelBoot = sync.OnceValue(readKernelBoot)

// readKernelBoot reads the ID from the environment, because the systemd unit hides the kernel's file, or from the
// file. If both fail, it returns uuid.Nil, and the portal uses the wall-clock times of the samples.
func readKernelBoot() uuid.UUID {
	text := os.Getenv("LONGLINE_KERNEL_BOOT_ID")
	if text == "" {
		data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
		text = strings.TrimSpace(string(data))
	}
	id, err := uuid.Parse(text)
	if err != nil {
		return uuid.Nil
	}
	return id
}

// uptimeAt returns the router's uptime at the time at (CLOCK_BOOTTIME in ms). Nobody can set this clock, and it
// continues while the machine is suspended.
func uptimeAt(at time.Time) int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) // every kernel since 2.6.39 has this clock
	return (time.Duration(now.Nano()) - time.Since(at)).Milliseconds()
}
