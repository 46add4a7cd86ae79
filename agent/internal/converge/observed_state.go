package converge

import (
	"context"
	"maps"
	"time"

	"longline.dev/agent/internal/apply"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/plan"
)

// ObservedState is VPP as it was last seen, compared with an intent. Nobody changes it once it is made.
type ObservedState struct {
	Look     int64          // which look at VPP it shows, see Status
	Intent   *intent.Intent // an empty one when none is held
	Plan     *plan.Plan
	Snapshot *observe.Snapshot
	// Drift are the differences that others made: those that are held and, from ObservedStateToReport alone, those
	// that were repaired since the last report.
	Drift map[intent.Key][]plan.Drift
	// Contested is what others change again after each repair.
	Contested map[intent.Key][]Contested
	// Made is, by index, after which look the agent last made an interface there; absent if it found it there.
	Made map[uint32]int64
}

// seen is what is known of VPP without asking it again.
type seen struct {
	look               int64
	snapshot           *observe.Snapshot // nil: nothing
	fullObservationAt  time.Time         // when all of it was last read
	quickObservationAt time.Time         // when all that others can change was last read
	state              *ObservedState    // of snapshot, made when it is first wanted
}

// ObservedStateToReport is ObservedState with the drift that was repaired since this was last called. That is shown
// once, and then Changed follows. It is for the reporter alone: what one caller has taken, no other gets.
func (e *Engine) ObservedStateToReport(ctx context.Context) (*ObservedState, error) {
	p, err := e.ObservedState(ctx)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.unreported) == 0 {
		return p, nil
	}
	told := *p
	told.Drift, e.unreported = withDrift(p.Drift, e.unreported), nil
	e.notify()
	return &told, nil
}

// ObservedState is VPP as it was last seen, against the intent now held. It asks VPP only when nothing is known of
// it; Serve keeps what is known fresh. Error: ErrNoVPP, ErrStopping or that of the connection.
func (e *Engine) ObservedState(ctx context.Context) (*ObservedState, error) {
	if p := e.knownState(); p != nil {
		return p, nil
	}
	if err := e.begin(); err != nil {
		return nil, err
	}
	defer e.busy.Unlock()
	if p := e.knownState(); p != nil {
		return p, nil
	}
	session, err := e.Session()
	if err != nil {
		return nil, err
	}
	look, snapshot := e.lastSeen()
	if snapshot == nil {
		if _, err = e.fullObservation(ctx, session); err != nil {
			return nil, err
		}
		if look, snapshot = e.lastSeen(); snapshot == nil {
			return nil, ErrNoVPP // the connection was replaced meanwhile
		}
	}
	p := &ObservedState{Look: look, Intent: e.heldOrEmpty(), Snapshot: snapshot}
	p.Plan = e.diff(p.Intent, snapshot, e.journal.Of(snapshot.Boot), nil)
	p.Drift, p.Contested = e.settled.drift(p.Plan.Ops), e.contests.now(p.Intent, e.now())
	e.mu.Lock()
	defer e.mu.Unlock()
	p.Made = maps.Clone(e.made)
	if e.seen.snapshot == snapshot {
		e.seen.state = p
	}
	return p, nil
}

// knownState is the observed state that is there already, nil if it has to be made.
func (e *Engine) knownState() *ObservedState {
	held, _ := e.store.Held()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.session == nil || e.session.Err() != nil {
		return nil
	}
	if p := e.seen.state; p != nil && (p.Intent == held || held == nil) {
		return p
	}
	return nil
}

func (e *Engine) heldOrEmpty() *intent.Intent {
	if held, _ := e.store.Held(); held != nil {
		return held
	}
	return &intent.Intent{}
}

// lastSeen is the number of the last look through the present connection and what it showed, nil for nothing.
func (e *Engine) lastSeen() (int64, *observe.Snapshot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen.look, e.seen.snapshot
}

// LastSnapshot is what the last look through the present connection showed, nil for nothing. VPP is not asked.
func (e *Engine) LastSnapshot() *observe.Snapshot {
	_, snapshot := e.lastSeen()
	return snapshot
}

// nextLook numbers the looks at VPP; with mu. The numbers grow over restarts of the agent too, as long as its
// clock does not go back: they are microseconds since the Unix epoch.
func (e *Engine) nextLook() int64 { return max(e.seen.look+1, e.now().UnixMicro()) }

// fullObservation reads all of VPP (observe.Full).
func (e *Engine) fullObservation(ctx context.Context, session Session, ins ...*intent.Intent) (*observe.Snapshot, error) {
	epoch := e.epoch(session)
	e.takeEvents() // all that they are about is read
	snapshot, err := observe.Full(ctx, session, boot(session), e.claimedPorts(session)...)
	if err == nil {
		snapshot.Epoch = epoch
		snapshot, err = e.askUseOfPorts(ctx, session, snapshot, ins)
	}
	if err != nil {
		e.forceFullObservation() // the events are taken, and what they are about was not read
		return nil, err
	}
	e.remember(session, snapshot, extentFull)
	return snapshot, nil
}

// quickObservation (observe.Quick) reads what others can change in place, and all of VPP when that is not enough or when
// FullObservation has passed since it was last done.
func (e *Engine) quickObservation(ctx context.Context, session Session, ins ...*intent.Intent) (*observe.Snapshot, error) {
	e.mu.Lock()
	old, fresh := e.seen.snapshot, e.now().Sub(e.seen.fullObservationAt) < e.FullObservation
	e.mu.Unlock()
	if old == nil || !fresh {
		return e.fullObservation(ctx, session, ins...)
	}
	epoch := e.epoch(session)
	changed, complete := e.takeEvents()
	if !complete {
		return e.fullObservation(ctx, session, ins...)
	}
	snapshot, ok, err := observe.Quick(ctx, session, old, changed)
	switch {
	case err != nil:
		e.forceFullObservation() // the events are taken, and what they are about was not read
		return nil, err
	case !ok:
		return e.fullObservation(ctx, session, ins...)
	}
	snapshot.Epoch = epoch
	if snapshot, err = e.askUseOfPorts(ctx, session, snapshot, ins); err != nil {
		e.forceFullObservation()
		return nil, err
	}
	e.remember(session, snapshot, extentQuick)
	return snapshot, nil
}

// claimedPorts returns the names of the ports that the journal claims; with busy.
func (e *Engine) claimedPorts(session Session) (names []string) {
	for _, claim := range e.journal.Of(boot(session)).Claims {
		if claim.Port != "" {
			names = append(names, claim.Port)
		}
	}
	return names
}

// eventObservation reads only the interfaces that events have named since the last observation (observe.Partial), and does as
// quickObservation where that is not enough: when an event may have been lost, or the last quick observation is too old.
//
// VPP sends an event whenever an interface comes, goes, or changes its admin or link state, in the round of its main loop
// after the change. So if the stats segment's epoch was read before VPP's last replies, the events of all changes within
// that epoch are here by then. Where some still wait, the snapshot has no epoch, and nobody takes it for complete.
func (e *Engine) eventObservation(ctx context.Context, session Session, ins ...*intent.Intent) (*observe.Snapshot, error) {
	e.mu.Lock()
	old, fresh := e.seen.snapshot, e.now().Sub(e.seen.quickObservationAt) < driftEvery && e.now().Sub(e.seen.fullObservationAt) < e.FullObservation
	few := !e.eventsLost && len(e.events) > 0 && len(e.events) <= fewTouched
	e.mu.Unlock()
	if old == nil || !fresh || !few {
		return e.quickObservation(ctx, session, ins...)
	}
	epoch := e.epoch(session)
	changed, _ := e.takeEvents()
	snapshot, err := observe.Changed(ctx, session, old, changed)
	if err != nil {
		e.forceFullObservation()
		return nil, err
	}
	snapshot.Epoch, snapshot.Uses = epoch, nil
	if e.eventsWaiting != nil && e.eventsWaiting() {
		snapshot.Epoch = 0
	}
	if snapshot, err = e.askUseOfPorts(ctx, session, snapshot, ins); err != nil {
		e.forceFullObservation()
		return nil, err
	}
	e.remember(session, snapshot, extentPartial)
	return snapshot, nil
}

// noteEvent remembers that an interface has to be read again. waiting is how many further events have come, of the most
// that can wait: beyond those, events are lost.
func (e *Engine) noteEvent(index uint32, waiting, most int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.eventsLost = e.eventsLost || waiting >= most-1
	if index == 0 {
		return // local0 takes no part in anything, and its index stands for all interfaces in a dump
	}
	if e.events == nil {
		e.events = make(map[uint32]bool)
	}
	e.events[index] = true
}

// takeEvents returns the interfaces that events have named since it was last called; complete is false if some events may
// have been lost.
func (e *Engine) takeEvents() (changed map[uint32]bool, complete bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	changed, complete = e.events, !e.eventsLost
	e.events, e.eventsLost = nil, false
	return changed, complete
}

// epoch is the stats segment's, 0 when it is not known; with busy.
func (e *Engine) epoch(session Session) int64 {
	if e.Epoch == nil {
		return 0
	}
	epoch, err := e.Epoch(session.Info().BootMS)
	if err != nil {
		e.log.Debug("the epoch of VPP's stats segment is not known", "error", err)
		return 0
	}
	return epoch
}

// askUseOfPorts asks for what others do with ports that the held intent or these want whole, and with the sub-interfaces
// that these want adopted.
func (e *Engine) askUseOfPorts(ctx context.Context, session Session, s *observe.Snapshot, ins []*intent.Intent) (*observe.Snapshot, error) {
	s, err := observe.ReadPortUses(ctx, session, s, plan.PortsToTake(s, append(ins, e.heldOrEmpty())...))
	if err != nil {
		return nil, err
	}
	return observe.ReadSubInterfacePolicing(ctx, session, s, plan.SubInterfacesToAdopt(s, ins...))
}

// remember remembers a snapshot, nil to know nothing any more. What was seen through an earlier connection is of
// no use.
func (e *Engine) remember(session Session, snapshot *observe.Snapshot, extent extent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.session != session {
		return
	}
	e.seen.look, e.seen.snapshot, e.seen.state = e.nextLook(), snapshot, nil
	switch extent {
	case extentFull:
		e.seen.fullObservationAt, e.seen.quickObservationAt = e.now(), e.now()
		e.statistics.FullObservations++
	case extentQuick:
		e.seen.quickObservationAt = e.now()
		e.statistics.QuickObservations++
	case extentPartial:
		e.statistics.PartialObservations++
	}
}

// extent is how much of VPP was read.
type extent int

const (
	extentReadBack extent = iota // what was changed
	extentPartial
	extentQuick
	extentFull
)

// noteMade remembers what was made, so that its counters are not compared with those of what was there before.
func (e *Engine) noteMade(result *apply.Result) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, index := range result.Made {
		e.made[index] = e.seen.look
	}
}

// forceFullObservation makes the next look a full one.
func (e *Engine) forceFullObservation() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen.fullObservationAt = time.Time{}
}
