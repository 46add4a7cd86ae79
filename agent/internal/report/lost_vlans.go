package report

import (
	"fmt"
	"maps"
	"time"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/statseg"
)

const (
	// lostFor is for how long frames have to come to a port, and none with the VLAN, until its sub-interface is made anew.
	lostFor = 30 * time.Second
	// anewEvery is the least time between two such attempts at an end.
	anewEvery = 10 * time.Minute
	// restoredWithin is how soon after an attempt frames have to come in again for it to be what brought them.
	restoredWithin = 2 * time.Minute
)

// lostVLANs finds the ends whose VLAN VPP no longer knows although their sub-interface is there. VPP refuses a second
// sub-interface with the same tags, and takes the first one out of the port's table of VLANs with it (measured on 25.10):
// its frames are dropped as of an unknown VLAN from then on, and nothing that can be read of it shows that. Made anew it
// is found again. A customer who stops sending on a port to which other VLANs come looks the same until then; what is
// made anew for nothing has counted no frames, and so is not tried again before some have come in.
type lostVLANs struct {
	ends    map[intent.Key]*vlanFrames
	unknown uint64 // packets of unknown VLANs of all ports, as last read
	// attempts are the last ones: they outlive readings in which their sub-interface is not there, as while it is made anew.
	attempts map[intent.Key]*vlanAttempt
}

// vlanFrames are the frames of one end's sub-interface, and those that its port dropped.
type vlanFrames struct {
	access Access // as the sampler tells one from the other
	last   vlanReading
	// still is the reading since which the port has dropped frames in each interval, and no frame has come in.
	still vlanReading
	// flowing are the frames a second that the port dropped in the last two intervals in which frames came in. The stop
	// lies within the last one.
	flowing []float64
}

type vlanReading struct {
	at        time.Time
	in, drops uint64
}

// vlanAttempt is a sub-interface that was made anew.
type vlanAttempt struct {
	access  Access // before
	at      time.Time
	since   time.Time // when frames were last known to come in
	drops   float64   // frames a second that the port dropped since
	matters bool      // it dropped at least twice as many as before; false too once it is told or known to be in vain
}

// take adds a reading. lost are to be made anew; restored says of ends that were what was wrong, where it was that VLAN
// that the port dropped: at least twice as many frames as before and afterwards.
func (l *lostVLANs) take(at time.Time, reading statseg.Reading, view View) (lost []Access, restored map[intent.Key]string) {
	unknown := reading.Errors.UnknownVLAN
	if unknown == nil {
		l.forgetFrames()
		return nil, nil
	}
	maps.DeleteFunc(l.attempts, func(_ intent.Key, a *vlanAttempt) bool {
		return at.Sub(a.at) >= anewEvery || a.access.BootMS != reading.BootMS
	})
	unknownGrew := *unknown > l.unknown
	before := l.ends
	l.ends, l.unknown = make(map[intent.Key]*vlanFrames, len(view.Accesses)), *unknown
	for _, access := range view.Accesses {
		now, known := vlanReadingOf(access, at, reading)
		if !known {
			continue
		}
		access.Policer, access.Tunnel = Policer{}, Tunnel{}
		frames := before[access.Key]
		if frames == nil || frames.access != access || now.in < frames.last.in || now.drops < frames.last.drops {
			l.ends[access.Key] = &vlanFrames{access: access, last: now, still: now}
			continue
		}
		l.ends[access.Key] = frames
		came, dropped := now.in > frames.last.in, now.dropsASecond(frames.last)
		frames.last = now
		attempt := l.attempts[access.Key]
		switch {
		case came:
			frames.still, frames.flowing = now, append(frames.flowing, dropped)[max(len(frames.flowing)-1, 0):]
			if attempt.restored(access, at, dropped) {
				if restored == nil {
					restored = make(map[intent.Key]string)
				}
				restored[access.Key] = attempt.inWords(access)
				attempt.matters = false
			}
		case dropped == 0 || !unknownGrew:
			frames.still = now
		default:
			attempt.wasInVain(access)
			if attempt == nil && frames.isLost(at) {
				if l.attempts == nil {
					l.attempts = make(map[intent.Key]*vlanAttempt)
				}
				l.attempts[access.Key] = frames.newAttempt()
				lost = append(lost, access)
			}
		}
	}
	return lost, restored
}

// forgetFrames is for when counters are not known, or not those of before.
func (l *lostVLANs) forgetFrames() { l.ends, l.unknown = nil, 0 }

// vlanReadingOf is not known of whole ports, nor without trustworthy counters.
func vlanReadingOf(access Access, at time.Time, r statseg.Reading) (vlanReading, bool) {
	port := access.Port
	if port == (Port{}) || access.BootMS != r.BootMS || int(max(access.Index, port.Index)) >= min(len(r.Rx), len(r.Names), len(r.Losses.Drops)) {
		return vlanReading{}, false
	}
	if r.Names[access.Index] != access.Name || r.Names[port.Index] != port.Name {
		return vlanReading{}, false
	}
	return vlanReading{at, r.Rx[access.Index].Packets, r.Losses.Drops[port.Index]}, true
}

func (r vlanReading) dropsASecond(before vlanReading) float64 {
	took := r.at.Sub(before.at).Seconds()
	if took <= 0 {
		return 0
	}
	return float64(r.drops-before.drops) / took
}

// isLost reports whether frames came in once and have stopped for long enough.
func (f *vlanFrames) isLost(at time.Time) bool {
	return f.last.in > 0 && at.Sub(f.still.at) >= lostFor
}

func (f *vlanFrames) newAttempt() *vlanAttempt {
	drops := f.last.dropsASecond(f.still)
	before := 0.0 // of an end whose only interval with frames is that of the stop: what comes afterwards decides
	if len(f.flowing) > 1 {
		before = f.flowing[0]
	}
	return &vlanAttempt{f.access, f.last.at, f.still.at, drops, drops >= 2*before}
}

// wasInVain notes that the port goes on dropping frames and none come in: whatever brings them later was not the attempt.
func (a *vlanAttempt) wasInVain(now Access) {
	if a != nil && a.access != now {
		a.matters = false
	}
}

// restored reports whether frames come in because of the attempt; dropped are frames a second in the last interval.
func (a *vlanAttempt) restored(now Access, at time.Time, dropped float64) bool {
	return a != nil && a.matters && a.access != now && at.Sub(a.at) <= restoredWithin && a.drops >= 2*dropped
}

func (a *vlanAttempt) inWords(now Access) string {
	return fmt.Sprintf("from %s no frame with the VLAN of %s came in, and %s dropped frames of unknown VLANs; made anew it takes them. "+
		"VPP does so when somebody asks for another sub-interface with the same VLAN and is refused",
		a.since.UTC().Format(time.DateTime+" MST"), now.Name, now.Port.Name)
}
