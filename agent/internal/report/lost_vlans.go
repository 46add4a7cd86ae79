package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/packettrace"
	"longline.dev/agent/internal/statseg"
)

const (
	// quietFor is the time after which the agent uses VPP's tracer, if the port has dropped frames during
	// this time and no frame has arrived on the end's sub-interface.
	quietFor = 30 * time.Second
	// firstSearchPause and longestSearchPause are the first and the longest pause between two searches for the
	// same end. The pause doubles after each search.
	firstSearchPause   = time.Minute
	longestSearchPause = 10 * time.Minute
	// rebuildEvery is the shortest time between the restoration of an end's frames by a rebuild and the next
	// search for that end.
	rebuildEvery = 10 * time.Minute
	// restoredWithin is a time after a rebuild. If no frame arrives within this time, the rebuild has failed.
	restoredWithin = 2 * time.Minute
)

// lostVLANs finds the ends whose VLAN VPP no longer knows although their sub-interface exists. The cause is a
// second sub-interface with the same tags: VPP refuses to create it, but also removes the first sub-interface
// from the port's table of VLANs (measured on 25.10). From then on VPP drops the frames of the first
// sub-interface as frames of an unknown VLAN. No API message shows this.
//
// Counters are not enough evidence, because a port also drops the frames of VLANs that are not configured.
// The evidence is a frame with the end's tags that VPP drops at the end's port as a frame of an unknown VLAN
// (packettrace.UnknownVLANs). The agent then rebuilds the end once. If no frames arrive after the rebuild,
// only an operator can start another rebuild.
type lostVLANs struct {
	ends     map[intent.Key]*vlanFrames
	unknown  uint64 // counter of packets of unknown VLANs on all ports, as last read
	rebuilds *rebuilds
	// rebuilt is the time when the last successful rebuild restored an end's frames, by end.
	rebuilt map[intent.Key]time.Time
}

// vlanFrames has the counters of the frames that one end's sub-interface received, and of the frames that its
// port dropped.
type vlanFrames struct {
	access Access // without policer and tunnel
	last   vlanReading
	// quiet is the reading at the beginning of the current quiet time. In this time, no frame has arrived on
	// the sub-interface, and the port has dropped frames in each interval.
	quiet vlanReading
	// pause is the pause before the next search. next is the earliest time of that search.
	pause time.Duration
	next  time.Time
	// loss describes the loss of the end's frames. It is nil if there is no loss.
	loss *VLANLoss
}

// VLANLossState is the state of a suspected or confirmed loss of frames with an end's VLAN.
type VLANLossState string

const (
	// VLANNotExamined means that no frames arrive and the port drops frames, but VPP's tracer could not be used.
	VLANNotExamined VLANLossState = "not_examined"
	// VLANDropped means that VPP drops frames of the end, and the sub-interface has not been rebuilt yet.
	VLANDropped VLANLossState = "dropped"
	// VLANRebuilt means that the sub-interface has been rebuilt, and no frame has arrived yet.
	VLANRebuilt VLANLossState = "rebuilt"
	// VLANNotRestored means that the rebuild failed. Only an operator can start another rebuild.
	VLANNotRestored VLANLossState = "not_restored"
)

// VLANLoss is a suspected or confirmed loss of an end's frames.
type VLANLoss struct {
	State  VLANLossState
	Since  time.Time // when frames last arrived
	Detail string
}

// vlanReading is a reading of the counters of an end. dropped is the number of frames that the port itself
// dropped, without the drops of its sub-interfaces. The difference matters because VPP counts a drop on a
// sub-interface, for example by a policer, both on the sub-interface and on its port.
type vlanReading struct {
	at          time.Time
	in, dropped uint64
}

// vlanEvents are the events that follow from a reading of the counters.
type vlanEvents struct {
	// rebuilt, restored and notRestored have the text of each event, by end.
	rebuilt, restored, notRestored map[intent.Key]string
}

// take adds a reading of the counters. It returns the ends for whose frames the agent has to search with
// VPP's tracer, and the events that follow from the reading.
func (l *lostVLANs) take(at time.Time, reading statseg.Reading, view View) (suspects []Access, events vlanEvents) {
	unknown := reading.Errors.UnknownVLAN
	if unknown == nil {
		l.forgetFrames()
		return nil, vlanEvents{}
	}
	unknownGrew := *unknown > l.unknown
	before := l.ends
	l.ends, l.unknown = make(map[intent.Key]*vlanFrames, len(view.Accesses)), *unknown
	ports := &portDrops{reading, view, make(map[Port]ownDrops)}
	for _, access := range view.Accesses {
		now, known := ports.read(access, at)
		if !known {
			continue
		}
		access.Policer, access.Tunnel = Policer{}, Tunnel{}
		frames := before[access.Key]
		if frames == nil || frames.access != access || now.in < frames.last.in || now.dropped < frames.last.dropped {
			loss := (*VLANLoss)(nil)
			if frames != nil && l.rebuilds.of(access.Key) != nil {
				loss = frames.loss
			}
			frames = &vlanFrames{access: access, last: now, quiet: now, loss: loss}
			l.ends[access.Key] = frames
			l.noteRebuilt(at, frames, &events)
			if now.in == 0 {
				l.noteNotRestored(at, frames, &events)
			}
			continue
		}
		l.ends[access.Key] = frames
		arrived, dropped := now.in > frames.last.in, now.dropped > frames.last.dropped
		frames.last = now
		l.noteRebuilt(at, frames, &events)
		switch {
		case arrived:
			frames.quiet, frames.pause, frames.next, frames.loss = now, 0, time.Time{}, nil
			l.noteRestored(at, frames, &events)
		case !dropped || !unknownGrew:
			frames.quiet = now
			if frames.loss != nil && frames.loss.State == VLANNotExamined {
				frames.loss = nil
			}
			l.noteNotRestored(at, frames, &events)
		default:
			l.noteNotRestored(at, frames, &events)
			if l.isSuspect(at, frames) {
				suspects = append(suspects, access)
			}
		}
	}
	return suspects, events
}

// isSuspect reports whether the agent has to search for frames of the end now. Frames must have arrived
// before and have stopped for at least quietFor. The pauses after the last search and the last rebuild must
// be over, and no rebuild of the end may be running or have failed.
func (l *lostVLANs) isSuspect(at time.Time, frames *vlanFrames) bool {
	r := l.rebuilds.of(frames.access.Key)
	return frames.last.in > 0 && at.Sub(frames.quiet.at) >= quietFor && !at.Before(frames.next) && (r == nil || r.Recovered) &&
		at.Sub(l.rebuilt[frames.access.Key]) >= rebuildEvery
}

// judge evaluates the result of a search for these ends, and returns the ends to rebuild. why is nil, or the
// reason why the tracer could not be used.
func (l *lostVLANs) judge(at time.Time, searched []Access, dropped map[packettrace.VLAN]int, why error) (lost []Access) {
	for _, access := range searched {
		frames := l.ends[access.Key]
		if frames == nil || !frames.access.isSame(access) {
			continue
		}
		frames.pause = min(max(2*frames.pause, firstSearchPause), longestSearchPause)
		frames.next = at.Add(frames.pause)
		if frames.quiet.at.Add(quietFor).After(at) {
			continue // frames arrived meanwhile
		}
		count := dropped[access.VLAN]
		switch {
		case count > 0 && l.rebuilds.of(access.Key) != nil:
			frames.loss = &VLANLoss{VLANNotRestored, frames.quiet.at, evidenceOf(access, count)}
		case count > 0:
			frames.loss = &VLANLoss{VLANDropped, frames.quiet.at, evidenceOf(access, count)}
			lost = append(lost, access)
		case why != nil:
			frames.loss = &VLANLoss{VLANNotExamined, frames.quiet.at, fmt.Sprintf(
				"since %s no frame of %s has arrived while %s drops frames; whether they are of this VLAN could not be examined: %v",
				inUTC(frames.quiet.at), access.Name, access.Port.Name, why)}
		default:
			frames.loss = nil
		}
	}
	return lost
}

// begin records on disk that a rebuild of an end is starting. requested means that an operator requested the
// rebuild.
func (l *lostVLANs) begin(at time.Time, access Access, requested bool) error {
	frames := l.ends[access.Key]
	rebuild := rebuild{VLL: access.Key.VLL, End: access.Key.End, Interface: access.Name, BeganMS: at.UnixMilli(), Requested: requested, made: access.Made}
	if frames != nil && frames.loss != nil {
		rebuild.SinceMS, rebuild.Detail = frames.loss.Since.UnixMilli(), frames.loss.Detail
	}
	return l.rebuilds.begin(rebuild)
}

// noteRebuilt records the rebuild of an end as carried out if the end's sub-interface was created again since
// the rebuild began.
func (l *lostVLANs) noteRebuilt(at time.Time, frames *vlanFrames, events *vlanEvents) {
	r := l.rebuilds.of(frames.access.Key)
	if r == nil || r.RebuiltMS != 0 || r.made == frames.access.Made {
		return
	}
	why := "an operator requested it"
	if !r.Requested {
		why = r.Detail
	}
	put(&events.rebuilt, frames.access.Key, fmt.Sprintf("%s was deleted and created again: %s", frames.access.Name, why))
	r.RebuiltMS, r.Failed = at.UnixMilli(), false
	l.rebuilds.replace(*r)
	frames.loss = &VLANLoss{VLANRebuilt, frames.quiet.at, why}
}

// noteRestored completes the rebuild of an end after a frame has arrived. If the rebuild had failed before,
// noteRestored records that the end has recovered.
func (l *lostVLANs) noteRestored(at time.Time, frames *vlanFrames, events *vlanEvents) {
	key := frames.access.Key
	r := l.rebuilds.of(key)
	switch {
	case r == nil || r.RebuiltMS == 0 && !r.Failed || r.Recovered:
		return
	case r.Failed:
		r.Recovered = true
		l.rebuilds.replace(*r)
		return
	}
	if !r.Requested {
		put(&events.restored, key, fmt.Sprintf("frames of %s have arrived again since it was re-created. VPP drops them when another user requests another "+
			"sub-interface with the same VLAN and is refused", frames.access.Name))
	}
	l.rebuilds.forget(key)
	if l.rebuilt == nil {
		l.rebuilt = make(map[intent.Key]time.Time)
	}
	l.rebuilt[key] = at
}

// noteNotRestored records a rebuild as failed in two cases: if it was not carried out within restoredWithin,
// or if no frame arrived within restoredWithin after the rebuild.
func (l *lostVLANs) noteNotRestored(at time.Time, frames *vlanFrames, events *vlanEvents) {
	key := frames.access.Key
	r := l.rebuilds.of(key)
	if r == nil || r.Recovered {
		return
	}
	if !r.Failed && at.Sub(time.UnixMilli(cmp.Or(r.RebuiltMS, r.BeganMS))) >= restoredWithin {
		r.Failed = true
		l.rebuilds.replace(*r)
		text := fmt.Sprintf("no frame of %s arrived within %s after it was created again", frames.access.Name, restoredWithin)
		if r.RebuiltMS == 0 {
			text = fmt.Sprintf("%s was to be deleted and created again, and was not within %s", frames.access.Name, restoredWithin)
		}
		put(&events.notRestored, key, text+"; it is not rebuilt again before an operator requests it")
	}
	if r.Failed {
		frames.loss = &VLANLoss{VLANNotRestored, time.UnixMilli(cmp.Or(r.SinceMS, r.BeganMS)), r.Detail}
	}
}

func (l *lostVLANs) losses() map[intent.Key]VLANLoss {
	losses := make(map[intent.Key]VLANLoss)
	for key, frames := range l.ends {
		if frames.loss != nil {
			losses[key] = *frames.loss
		}
	}
	return losses
}

// access returns the sub-interface of an end as last read.
func (l *lostVLANs) access(key intent.Key) (Access, bool) {
	frames := l.ends[key]
	if frames == nil {
		return Access{}, false
	}
	return frames.access, true
}

// forgetFrames discards the last counters. Call it if the current counters are not available, or cannot be
// compared with the last counters.
func (l *lostVLANs) forgetFrames() { l.ends, l.unknown = nil, 0 }

// isSame reports whether a and other are the same sub-interface, regardless of policer and tunnel.
func (a Access) isSame(other Access) bool {
	a.Policer, a.Tunnel, other.Policer, other.Tunnel = Policer{}, Tunnel{}, Policer{}, Tunnel{}
	return a == other
}

// portDrops determines the numbers of frames that ports themselves dropped.
type portDrops struct {
	reading statseg.Reading
	view    View
	own     map[Port]ownDrops
}

type ownDrops struct {
	count uint64
	known bool
}

// read returns the counters of an end. It returns false for a whole port, and if the counters are not
// reliable.
func (p *portDrops) read(access Access, at time.Time) (vlanReading, bool) {
	r := p.reading
	if access.Port == (Port{}) || access.BootMS != r.BootMS || int(access.Index) >= min(len(r.Rx), len(r.Names)) || r.Names[access.Index] != access.Name {
		return vlanReading{}, false
	}
	own, read := p.own[access.Port]
	if !read {
		own.count, own.known = p.ownOf(access.Port)
		p.own[access.Port] = own
	}
	return vlanReading{at, r.Rx[access.Index].Packets, own.count}, own.known
}

// ownOf returns the number of frames that a port dropped, without the drops of its sub-interfaces. It returns
// false if the number is unknown.
func (p *portDrops) ownOf(port Port) (uint64, bool) {
	total, known := p.dropsOf(port)
	for _, sub := range p.view.Subs[port.Index] {
		drops, counted := p.dropsOf(sub)
		if !counted || drops > total {
			return 0, false
		}
		total -= drops
	}
	return total, known
}

func (p *portDrops) dropsOf(i Port) (uint64, bool) {
	r := p.reading
	if int(i.Index) >= min(len(r.Names), len(r.Losses.Drops)) || r.Names[i.Index] != i.Name {
		return 0, false
	}
	return r.Losses.Drops[i.Index], true
}

func evidenceOf(access Access, count int) string {
	tags := fmt.Sprintf("VLAN %d", access.VLAN.Outer)
	if access.VLAN.Inner != 0 {
		tags = fmt.Sprintf("VLANs %d and %d", access.VLAN.Outer, access.VLAN.Inner)
	}
	return fmt.Sprintf("VPP's tracer shows %d frames with %s that %s dropped as frames of an unknown VLAN, although %s takes them", count, tags, access.Port.Name, access.Name)
}

func inUTC(at time.Time) string { return at.UTC().Format(time.DateTime + " MST") }

func put(texts *map[intent.Key]string, key intent.Key, text string) {
	if *texts == nil {
		*texts = make(map[intent.Key]string)
	}
	(*texts)[key] = text
}

// vlansOf returns the VLANs of these ends without duplicates.
func vlansOf(accesses []Access) []packettrace.VLAN {
	var vlans []packettrace.VLAN
	for _, access := range accesses {
		if !slices.Contains(vlans, access.VLAN) {
			vlans = append(vlans, access.VLAN)
		}
	}
	return vlans
}
