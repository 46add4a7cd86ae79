package converge

import (
	"context"
	"maps"
	"slices"
	"time"

	"longline.dev/agent/internal/apply"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/plan"
)

// ObservedState is the last observation of VPP, compared with an intent. It must not be changed after its
// creation.
type ObservedState struct {
	ObservationNumber int64          // number of the observation, see Status
	Intent            *intent.Intent // an empty intent if no intent is stored
	Plan              *plan.Plan
	Snapshot          *observe.Snapshot
	// Drift lists the differences that other clients have made and that are not repaired. If
	// ObservedStateToReport returned this state, Drift also lists the differences that were repaired since the
	// last report.
	Drift map[intent.Key][]plan.Drift
	// Contested lists the fields that another client changes again after each repair.
	Contested map[intent.Key][]Contested
	// Made maps the index of each interface that the agent has created to the number of the last observation
	// before the creation. An interface is missing if it existed when the agent started.
	Made map[uint32]int64
}

type observed struct {
	number             int64
	snapshot           *observe.Snapshot // nil if nothing is known
	fullObservationAt  time.Time         // time of the last full observation
	quickObservationAt time.Time         // time of the last observation of everything that other clients can change
	state              *ObservedState    // comparison of snapshot with the intent, made on request
}

// ObservedStateToReport returns the result of ObservedState with the drift that was repaired since the last
// call. It returns such drift only once, and then sends a token to the channel of Changed. Only the
// reporter may call it. If another caller got the drift, the drift would be missing in the next
// report.
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
	reported := *p
	reported.Drift, e.unreported = withDrift(p.Drift, e.unreported), nil
	e.notify()
	return &reported, nil
}

// ObservedState returns the last observation of VPP, compared with the stored intent. It queries VPP only if
// there is no observation yet. Serve keeps the observation up to date. It returns ErrNoVPP, ErrStopping or an
// error of the connection.
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
	number, snapshot := e.lastObserved()
	if snapshot == nil {
		if _, err = e.fullObservation(ctx, session); err != nil {
			return nil, err
		}
		if number, snapshot = e.lastObserved(); snapshot == nil {
			return nil, ErrNoVPP // the connection was replaced in the meantime
		}
	}
	p := &ObservedState{ObservationNumber: number, Intent: e.storedOrEmpty(), Snapshot: snapshot}
	p.Plan = e.diff(p.Intent, snapshot, e.journal.Of(snapshot.Boot), nil)
	p.Drift, p.Contested = e.settled.drift(p.Plan.Ops), e.contests.now(p.Intent, e.now())
	e.mu.Lock()
	defer e.mu.Unlock()
	p.Made = maps.Clone(e.made)
	if e.observed.snapshot == snapshot {
		e.observed.state = p
	}
	return p, nil
}

func (e *Engine) knownState() *ObservedState {
	stored, _ := e.store.Current()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.session == nil || e.session.Err() != nil {
		return nil
	}
	if p := e.observed.state; p != nil && (p.Intent == stored || stored == nil) {
		return p
	}
	return nil
}

func (e *Engine) storedOrEmpty() *intent.Intent {
	if stored, _ := e.store.Current(); stored != nil {
		return stored
	}
	return &intent.Intent{}
}

// lastObserved returns the number and the snapshot of the last observation through the present connection.
// The snapshot is nil if there was no observation.
func (e *Engine) lastObserved() (int64, *observe.Snapshot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.observed.number, e.observed.snapshot
}

// LastSnapshot returns the snapshot of the last observation through the present connection, or nil if there
// was no observation. It does not query VPP.
func (e *Engine) LastSnapshot() *observe.Snapshot {
	_, snapshot := e.lastObserved()
	return snapshot
}

// nextNumber returns the number of a new observation. The caller holds the mutex mu. The numbers are
// microseconds since the Unix epoch. They therefore also grow across restarts of the agent, unless its clock
// is set back.
func (e *Engine) nextNumber() int64 { return max(e.observed.number+1, e.now().UnixMicro()) }

func (e *Engine) fullObservation(ctx context.Context, session Session, ins ...*intent.Intent) (*observe.Snapshot, error) {
	epoch := e.epoch(session)
	e.takeEvents() // the observation reads all interfaces that the events name
	snapshot, err := observe.Full(ctx, session, boot(session), e.claimedPorts(session)...)
	return e.complete(ctx, session, snapshot, err, epoch, extentFull, ins)
}

// complete adds the uses of the ports to a snapshot, and stores the snapshot. If err is an error or the uses
// cannot be read, the next observation is full: the events were taken, but their interfaces were not read.
func (e *Engine) complete(
	ctx context.Context, session Session, snapshot *observe.Snapshot, err error, epoch int64, extent extent, ins []*intent.Intent,
) (*observe.Snapshot, error) {
	if err == nil {
		snapshot.Epoch = epoch
		snapshot, err = e.readPortUses(ctx, session, snapshot, ins)
	}
	if err != nil {
		e.forceFullObservation()
		return nil, err
	}
	e.remember(session, snapshot, extent)
	return snapshot, nil
}

// quickObservation reads the properties that other clients can change in place (observe.Quick). It
// makes a full observation instead in two cases: if these properties are not enough, or if the last
// full observation is older than FullObservation.
func (e *Engine) quickObservation(ctx context.Context, session Session, ins ...*intent.Intent) (*observe.Snapshot, error) {
	e.mu.Lock()
	old, fresh := e.observed.snapshot, e.now().Sub(e.observed.fullObservationAt) < e.options.FullObservation
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
	if err == nil && !ok {
		return e.fullObservation(ctx, session, ins...)
	}
	return e.complete(ctx, session, snapshot, err, epoch, extentQuick, ins)
}

// claimedPorts returns the names of the ports for which the journal has claims. The caller holds the mutex
// busy.
func (e *Engine) claimedPorts(session Session) (names []string) {
	for _, claim := range e.journal.Of(boot(session)).Claims {
		if claim.Port != "" {
			names = append(names, claim.Port)
		}
	}
	return names
}

// eventObservation reads only the interfaces that events have named since the last observation
// (observe.Partial). It makes a quick observation instead if an event may have been lost, or if the
// last quick or full observation is too old. It also does this if events have named no interface,
// or more interfaces than fewTouched.
//
// VPP sends an event when an interface is created or deleted, or when its admin or link state changes. VPP
// sends the event in the round of its main loop after the change. So if the agent read the epoch of the stats
// segment before it received VPP's last replies, it has also received the events of all changes up to that
// epoch. If some events have not been handled yet, the snapshot gets no epoch and therefore does
// not count as complete.
func (e *Engine) eventObservation(ctx context.Context, session Session, ins ...*intent.Intent) (*observe.Snapshot, error) {
	e.mu.Lock()
	old, fresh := e.observed.snapshot, e.now().Sub(e.observed.quickObservationAt) < driftEvery && e.now().Sub(e.observed.fullObservationAt) < e.options.FullObservation
	few := !e.eventsLost && len(e.events) > 0 && len(e.events) <= fewTouched
	e.mu.Unlock()
	if old == nil || !fresh || !few {
		return e.quickObservation(ctx, session, ins...)
	}
	epoch := e.epoch(session)
	changed, _ := e.takeEvents()
	snapshot, err := observe.Changed(ctx, session, old, changed)
	if err == nil {
		snapshot.Uses = nil
	}
	if e.eventsWaiting != nil && e.eventsWaiting() {
		epoch = 0
	}
	return e.complete(ctx, session, snapshot, err, epoch, extentPartial, ins)
}

// noteEvent records that an interface must be read again. waiting is the number of further events that have
// arrived. most is the largest number of events that can wait. Further events of VPP are lost.
func (e *Engine) noteEvent(index uint32, waiting, most int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.eventsLost = e.eventsLost || waiting >= most-1
	if index == 0 {
		return // local0 is never used, and a dump request with its index would mean all interfaces
	}
	if e.events == nil {
		e.events = make(map[uint32]bool)
	}
	e.events[index] = true
}

// takeEvents returns the interfaces that events have named since the last call. complete is false if events
// may have been lost.
func (e *Engine) takeEvents() (changed map[uint32]bool, complete bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	changed, complete = e.events, !e.eventsLost
	e.events, e.eventsLost = nil, false
	return changed, complete
}

// epoch returns the stats segment's epoch, or 0 if the epoch is unknown. The caller holds the mutex busy.
func (e *Engine) epoch(session Session) int64 {
	if e.options.Epoch == nil {
		return 0
	}
	epoch, err := e.options.Epoch(session.Info().BootMS)
	if err != nil {
		e.log.Debug("the epoch of VPP's stats segment is not known", "error", err)
		return 0
	}
	return epoch
}

// readPortUses adds to the snapshot how other clients use certain interfaces: the ports that these intents or
// the stored intent want as a whole, and the sub-interfaces that these intents want to adopt.
func (e *Engine) readPortUses(ctx context.Context, session Session, s *observe.Snapshot, ins []*intent.Intent) (*observe.Snapshot, error) {
	s, err := observe.ReadPortUses(ctx, session, s, plan.PortsToTake(s, append(ins, e.storedOrEmpty())...))
	if err != nil {
		return nil, err
	}
	return observe.ReadSubInterfacePolicing(ctx, session, s, plan.SubInterfacesToAdopt(s, ins...))
}

// remember stores the snapshot of the last observation. A nil snapshot means that the state of VPP
// is unknown. remember ignores snapshots of an earlier connection.
func (e *Engine) remember(session Session, snapshot *observe.Snapshot, extent extent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.session != session {
		return
	}
	e.observed.number, e.observed.snapshot, e.observed.state = e.nextNumber(), snapshot, nil
	switch extent {
	case extentFull:
		e.observed.fullObservationAt, e.observed.quickObservationAt = e.now(), e.now()
		e.statistics.FullObservations++
	case extentQuick:
		e.observed.quickObservationAt = e.now()
		e.statistics.QuickObservations++
	case extentPartial:
		e.statistics.PartialObservations++
	}
}

type extent int

const (
	extentReadBack extent = iota // changed objects only
	extentPartial
	extentQuick
	extentFull
)

// noteMade records the interfaces that the agent has created, so that the counters of a new
// interface are not compared with the counters of an earlier interface that had the same index.
func (e *Engine) noteMade(result *apply.Result) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, index := range result.Made {
		e.made[index] = e.observed.number
	}
}

// forceFullObservation has the effect that the next observation is full.
func (e *Engine) forceFullObservation() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.observed.fullObservationAt = time.Time{}
}

// partialObservation reads enough of VPP to plan an intent that changes only these VLLs (observe.Partial). It
// reads the interfaces of these VLLs, all foreign objects, and all cross-connects and bridges. It
// does not read the interfaces of the agent's other VLLs. A quick observation has checked these
// interfaces less than driftEvery ago, and the next quick observation checks them again.
//
// It returns nil if a partial observation is not enough. This is the case if the last quick or full
// observation is too old, if an interface has been created or deleted since that observation, or if
// the VLLs have too many interfaces. The snapshot must not be used for a plan that changes other
// VLLs, because their interfaces were not read.
func (e *Engine) partialObservation(ctx context.Context, session Session, in *intent.Intent, vlls map[string]bool) (*observe.Snapshot, error) {
	e.mu.Lock()
	old, fresh := e.observed.snapshot, e.now().Sub(e.observed.quickObservationAt) < driftEvery && e.now().Sub(e.observed.fullObservationAt) < e.options.FullObservation
	e.mu.Unlock()
	if old == nil || !fresh || old.Epoch == 0 {
		return nil, nil
	}
	epoch := e.epoch(session)
	read := readFor(old, vlls)
	if epoch != old.Epoch || len(read) > fewTouched {
		return nil, nil
	}
	snapshot, err := observe.Partial(ctx, session, old, read)
	if err != nil {
		return nil, err
	}
	snapshot.Epoch, snapshot.Uses = epoch, nil
	if snapshot, err = e.readPortUses(ctx, session, snapshot, []*intent.Intent{in}); err != nil {
		return nil, err
	}
	e.remember(session, snapshot, extentPartial)
	return snapshot, nil
}

// readFor returns the interfaces of these VLLs and the interfaces without the agent's tag. It omits
// local0, because local0 is never used, and a dump request with the index of local0 would mean all
// interfaces.
func readFor(s *observe.Snapshot, vlls map[string]bool) map[uint32]bool {
	read := make(map[uint32]bool)
	for _, i := range s.Interfaces {
		if tag, ours := ownership.ParseTag(i.Tag); i.Index != 0 && (!ours || vlls[tag.VLL]) {
			read[i.Index] = true
		}
	}
	return read
}

// differing returns the VLLs for which the two intents differ. The ends and tombstones of both intents must
// be sorted.
func differing(before, in *intent.Intent) map[string]bool {
	differ := make(map[string]bool)
	onlyIn(before.Present, in.Present, differ, func(e intent.End) intent.Key { return e.Key })
	onlyIn(in.Present, before.Present, differ, func(e intent.End) intent.Key { return e.Key })
	onlyIn(before.Removed, in.Removed, differ, func(r intent.Tombstone) intent.Key { return r.Key })
	onlyIn(in.Removed, before.Removed, differ, func(r intent.Tombstone) intent.Key { return r.Key })
	return differ
}

// onlyIn adds the VLLs of entries in a that are missing or different in b.
func onlyIn[E intent.End | intent.Tombstone](a, b []E, differ map[string]bool, keyOf func(E) intent.Key) {
	at := 0
	for _, entry := range a {
		key := keyOf(entry)
		for at < len(b) && keyOf(b[at]).Compare(key) < 0 {
			at++
		}
		if at == len(b) || b[at] != entry {
			differ[key.VLL] = true
		}
	}
}

// aboutOthers reports whether a plan has operations for VLLs other than these.
func aboutOthers(todo *plan.Plan, vlls map[string]bool) bool {
	return slices.ContainsFunc(todo.Ops, func(op plan.Op) bool { return !vlls[op.End.VLL] })
}

// cleanPlan is the last plan of the stored intent through a session, if that plan had no operations and no
// blocked ends. While it is set, a change of a few lines needs a plan for these lines only. An observation
// that finds a difference clears it.
type cleanPlan struct {
	session Session
	plan    *plan.Plan // nil if the last plan had operations or blocked ends
}

func (c *cleanPlan) note(session Session, todo *plan.Plan) {
	*c = cleanPlan{}
	if todo != nil && len(todo.Ops) == 0 && len(todo.Blocked) == 0 {
		*c = cleanPlan{session, todo}
	}
}
