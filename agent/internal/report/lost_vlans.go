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
	// quietFor is how long a port has to drop frames while none arrives with the VLAN, before the agent
	// uses VPP's tracer.
	quietFor = 30 * time.Second
	// firstSearchPause and longestSearchPause are the first and the longest pause between two searches for
	// the same end. The pause doubles each time.
	firstSearchPause   = time.Minute
	longestSearchPause = 10 * time.Minute
	// rebuildEvery is the least time between two rebuilds of an end that restored its frames.
	rebuildEvery = 10 * time.Minute
	// restoredWithin is how soon after a rebuild frames have to arrive.
	restoredWithin = 2 * time.Minute
)

// lostVLANs finds the ends whose VLAN VPP no longer knows although their sub-interface exists. VPP refuses
// a second sub-interface with the same tags, but also removes the first one from the port's table of VLANs
// (measured on 25.10). From then on VPP drops its frames as frames of an unknown VLAN, and no message shows
// that.
//
// Counters raise only a suspicion, because a port also drops the frames of VLANs that are not configured.
// The evidence is a frame with the end's tags that VPP drops at the end's port as a frame of an unknown
// VLAN (packettrace.UnknownVLANs). The agent then rebuilds the end once. If frames do not arrive
// afterwards, only an operator can start another rebuild.
type lostVLANs struct {
	ends     map[intent.Key]*vlanFrames
	unknown  uint64 // packets of unknown VLANs of all ports, as last read
	rebuilds *rebuilds
	// rebuilt is the time of the last rebuild that restored frames.
	rebuilt map[intent.Key]time.Time
}

// vlanFrames counts the frames of one end's sub-interface, and those that its port dropped.
type vlanFrames struct {
	access Access // without policer and tunnel
	last   vlanReading
	// quiet is the reading since which the port has dropped frames in each interval and no frame has
	// arrived.
	quiet vlanReading
	// pause is the pause before the next search. next is the earliest time of that search.
	pause time.Duration
	next  time.Time
	// loss describes a loss; nil for none.
	loss *VLANLoss
}

// VLANLossState is the state of a suspected or confirmed loss of frames with an end's VLAN.
type VLANLossState string

const (
	// VLANNotExamined: frames stopped and the port drops frames, but VPP's tracer could not be used.
	VLANNotExamined VLANLossState = "not_examined"
	// VLANDropped: VPP drops frames of the end, and the sub-interface has not been rebuilt yet.
	VLANDropped VLANLossState = "dropped"
	// VLANRebuilt: the sub-interface has been rebuilt, and no frame has arrived yet.
	VLANRebuilt VLANLossState = "rebuilt"
	// VLANNotRestored: no frame arrived after the rebuild. Only an operator can start another rebuild.
	VLANNotRestored VLANLossState = "not_restored"
)

// VLANLoss is a reported loss of an end's frames.
type VLANLoss struct {
	State  VLANLossState
	Since  time.Time // when frames last arrived
	Detail string
}

// vlanReading is a reading of the counters of an end. dropped are the frames that the port itself dropped,
// without those of its sub-interfaces. VPP counts a drop on a sub-interface, for example by a policer, on
// the sub-interface and on its port.
type vlanReading struct {
	at          time.Time
	in, dropped uint64
}

// vlanEvents are the findings of a reading or a search.
type vlanEvents struct {
	// rebuilt, restored and notRestored are texts for events.
	rebuilt, restored, notRestored map[intent.Key]string
}

// take adds a reading and returns the ends to search for.
func (l *lostVLANs) take(at time.Time, reading statseg.Reading, view View) (suspects []Access, events vlanEvents) {
	unknown := reading.Errors.UnknownVLAN
	if unknown == nil {
		l.forgetFrames()
		return nil, vlanEvents{}
	}
	unknownGrew := *unknown > l.unknown
	before := l.ends
	l.ends, l.unknown = make(map[intent.Key]*vlanFrames, len(view.Accesses)), *unknown
	ports := newPortDrops(reading, view)
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

// isSuspect reports whether to search for the end now: frames arrived before and have stopped for long
// enough.
func (l *lostVLANs) isSuspect(at time.Time, frames *vlanFrames) bool {
	r := l.rebuilds.of(frames.access.Key)
	return frames.last.in > 0 && at.Sub(frames.quiet.at) >= quietFor && !at.Before(frames.next) && (r == nil || r.Recovered) &&
		at.Sub(l.rebuilt[frames.access.Key]) >= rebuildEvery
}

// judge evaluates a search for these ends and returns the ends to rebuild. why is nil, or the reason why
// the tracer could not be used.
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

// begin records on disk that a rebuild of an end is starting. requested: an operator requested it.
func (l *lostVLANs) begin(at time.Time, access Access, requested bool) error {
	frames := l.ends[access.Key]
	rebuild := rebuild{VLL: access.Key.VLL, End: access.Key.End, Interface: access.Name, BeganMS: at.UnixMilli(), Requested: requested, made: access.Made}
	if frames != nil && frames.loss != nil {
		rebuild.SinceMS, rebuild.Detail = frames.loss.Since.UnixMilli(), frames.loss.Detail
	}
	return l.rebuilds.begin(rebuild)
}

// noteRebuilt detects that the sub-interface of an end was created again since its rebuild began.
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

// noteRestored completes the rebuild of an end whose frames arrive soon enough after it.
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

// noteNotRestored gives up a rebuild that was not carried out in time, or after which no frame arrived in
// time.
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

// losses returns the known losses by end.
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

// forgetFrames discards the counters when no current ones are available, or when they are not comparable
// with the previous ones.
func (l *lostVLANs) forgetFrames() { l.ends, l.unknown = nil, 0 }

// isSame reports whether it is the same sub-interface as before.
func (a Access) isSame(other Access) bool {
	a.Policer, a.Tunnel, other.Policer, other.Tunnel = Policer{}, Tunnel{}, Policer{}, Tunnel{}
	return a == other
}

// portDrops determines the frames that ports themselves dropped.
type portDrops struct {
	reading statseg.Reading
	view    View
	own     map[Port]ownDrops
}

type ownDrops struct {
	count uint64
	known bool
}

func newPortDrops(reading statseg.Reading, view View) *portDrops {
	return &portDrops{reading, view, make(map[Port]ownDrops)}
}

// read returns false for whole ports, and without reliable counters.
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

// ownOf returns a port's drops without those of its sub-interfaces.
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
