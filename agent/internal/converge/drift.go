package converge

import (
	"context"
	"maps"
	"slices"
	"time"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/plan"
	"longline.dev/agent/internal/vpp"
)

// Repair is the policy for drift. Drift is a difference that another client has made to a state that the
// agent had verified.
type Repair string

const (
	// Auto repairs drift as soon as it is detected. The zero value means the same.
	Auto Repair = "auto"
	// ReportOnly reports drift and does not repair it until the portal sends the intent again. The
	// agent still builds an end that was not built before, for example because the end waits for
	// its port.
	ReportOnly Repair = "hold"
)

// settled contains the ends that have reached their intended state, in the current run of VPP and
// for the current generation of the intent. Later differences of these ends are drift.
type settled struct {
	ends map[intent.Key]bool
	all  bool // all ends count as settled: set after a start of the agent, if the stored generation was applied before
}

// note records the results of an attempt. The attempt did not include the withheld ends, so the
// withheld ends keep their state.
func (s *settled) note(o *Outcome, withheld map[intent.Key]*plan.Reason) {
	if !o.Applied {
		return
	}
	before := *s
	*s = settled{ends: make(map[intent.Key]bool, len(o.Ends))}
	for _, end := range o.Ends {
		s.ends[end.Key] = end.Reason == nil
	}
	for key := range withheld {
		s.ends[key] = before.all || before.ends[key]
	}
}

// maybe reports whether the end may have reached its intended state. After a start of the agent this is
// unknown until the first attempt, and maybe returns true.
func (s *settled) maybe(key intent.Key) bool { return s.ends == nil || s.ends[key] }

// drifted returns the ends for which any of the operations would repair drift, each with a reason that names
// the drift.
func (s *settled) drifted(ops []plan.Op) map[intent.Key]*plan.Reason {
	withheld := make(map[intent.Key]*plan.Reason)
	for _, op := range ops {
		if withheld[op.End] == nil && s.differsBy(op) {
			withheld[op.End] = driftOnlyReported(op)
		}
	}
	return withheld
}

// drift returns the differences that other clients have made, by end.
func (s *settled) drift(ops []plan.Op) map[intent.Key][]plan.Drift {
	found := make(map[intent.Key][]plan.Drift)
	for _, op := range ops {
		if s.differsBy(op) {
			found[op.End] = append(found[op.End], op.Drift)
		}
	}
	return found
}

// differsBy reports whether the operation repairs a change that another client has made.
func (s *settled) differsBy(op plan.Op) bool { return !op.Follows && (s.all || s.ends[op.End]) }

func driftOnlyReported(op plan.Op) *plan.Reason {
	return &plan.Reason{
		Status: "pending", Code: "drift_held", Object: op.Drift.Object,
		Message: "another client changed " + op.Drift.Field + " of " + op.Drift.Object + "; it is not repaired until the intent is sent again",
	}
}

// convergeNewConnection converges after the agent has connected to VPP. A VPP that has restarted
// has lost all objects, so the converge creates all of them again. If the stored generation was
// already applied in this run of VPP, differences may be drift. Under ReportOnly or during a
// freeze, convergeNewConnection then repairs only what the policy and the freeze allow.
func (e *Engine) convergeNewConnection(ctx context.Context) {
	if (e.options.Repair == ReportOnly || e.options.Frozen.Current() != nil) && e.resume() {
		e.repair(ctx)
		return
	}
	e.Converge(ctx)
}

// resume reports whether the stored generation was already applied in the VPP that is connected now. If so,
// it restores the engine's state for that generation.
func (e *Engine) resume() bool {
	if e.begin() != nil {
		return false
	}
	defer e.busy.Unlock()
	stored, _ := e.store.Current()
	session, err := e.Session()
	if stored == nil || err != nil || e.journal.Of(boot(session)).Applied != stored.Generation {
		return false
	}
	if e.settled.ends == nil {
		e.settled.all = true
	}
	e.unfinished = false
	e.mu.Lock()
	e.applied = &Applied{Generation: stored.Generation, AtMS: e.now().UnixMilli()}
	e.mu.Unlock()
	return true
}

// CheckDrift detects drift once, and repairs it if the policy allows it. Serve does the same at least every
// 30 s.
func (e *Engine) CheckDrift(ctx context.Context) { e.repair(ctx) }

// repair observes VPP, converges if VPP differs from the stored intent, and reports whether it converged.
//
// A quick observation is enough to find that there is nothing to do. Otherwise repair plans from a full
// observation. Ends that VPP refused, and ends with contested fields, wait until their pause is over. Under
// ReportOnly, repair does not repair drift. If the last converge did not finish, repair converges again. If there
// is nothing else to do, repair carries out the requests of Rebuild.
func (e *Engine) repair(ctx context.Context) bool { return e.repairFrom(ctx, e.quickObservation) }

// repairAfterEvents does the same as repair. If possible, it reads only the interfaces that VPP's
// events have named. waits reports whether the stored intent is not completely built, for example
// because an end waits for its port.
func (e *Engine) repairAfterEvents(ctx context.Context) (repaired, waits bool) {
	repaired = e.repairFrom(ctx, e.eventObservation)
	e.busy.Lock()
	defer e.busy.Unlock()
	stored, _ := e.store.Current()
	return repaired, stored != nil && e.lastClean.plan == nil
}

func (e *Engine) repairFrom(ctx context.Context, read observeFunc) bool {
	if e.begin() != nil {
		return false
	}
	defer e.busy.Unlock()
	stored, _ := e.store.Current()
	if stored != nil && e.mustNotChange(ctx, stored) {
		return false
	}
	if e.unfinished && stored != nil {
		withheld := e.backoff.withheld(stored, e.now())
		e.convergeLocked(ctx, stored, nil, withheld, e.planEarly(ctx, e.fullObservation, stored, nil, withheld, nil))
		return true
	}
	e.keepPathsWatched(ctx, e.untouchedPaths)
	withheld, todo, _ := e.compare(ctx, stored, read)
	if todo == nil || len(todo.Ops) == 0 && !e.rebuildsWanted() {
		return false
	}
	withheld, todo, early := e.compare(ctx, stored, e.fullObservation)
	if todo == nil {
		return false
	}
	if len(todo.Ops) == 0 {
		return e.rebuild(ctx, stored, withheld, early)
	}
	drifted := e.settled.drift(todo.Ops)
	e.contests.repaired(stored, todo.Ops, drifted, e.now())
	e.mu.Lock()
	e.statistics.Repairs++
	e.unreported = withDrift(e.unreported, drifted)
	e.mu.Unlock()
	for _, op := range todo.Ops {
		if op.Follows {
			continue
		}
		e.log.Warn("drift", "end", op.End.String(), "object", op.Drift.Object, "field", op.Drift.Field,
			"desired", op.Drift.Desired, "actual", op.Drift.Actual)
	}
	e.convergeLocked(ctx, stored, nil, withheld, early)
	return true
}

// noteRepaired records drift that the converge for a new intent repairs as a side effect. The sign
// of such drift is an operation on a settled end that is the same in both intents. Without this
// record, a change of one line would hide another client's changes to another line.
func (e *Engine) noteRepaired(before, in *intent.Intent, ops []plan.Op) {
	if before == nil || len(ops) == 0 || e.unfinished { // operations after an unfinished converge do not repair drift
		return
	}
	found := e.settled.drift(ops)
	maps.DeleteFunc(found, func(key intent.Key, _ []plan.Drift) bool {
		was, is := endOf(before, key), endOf(in, key)
		return was == nil || is == nil || *was != *is
	})
	e.contests.repaired(in, ops, found, e.now())
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(found) == 0 || e.applied == nil { // a VPP that has just started lacks all objects; this is not drift
		return
	}
	e.unreported = withDrift(e.unreported, found)
	for key, drift := range found {
		e.log.Warn("drift, repaired with a new document", "end", key.String(), "drift", drift)
	}
}

// withDrift returns the union of drift and more, and each difference of an end occurs only once in
// it. It changes neither map.
func withDrift(drift, more map[intent.Key][]plan.Drift) map[intent.Key][]plan.Drift {
	all := make(map[intent.Key][]plan.Drift, len(drift)+len(more))
	maps.Copy(all, drift)
	for key, differences := range more {
		for _, d := range differences {
			if !slices.Contains(all[key], d) {
				all[key] = append(slices.Clip(all[key]), d)
			}
		}
	}
	return all
}

func endOf(in *intent.Intent, key intent.Key) *intent.End {
	at, found := slices.BinarySearchFunc(in.Present, key, func(end intent.End, key intent.Key) int { return end.Key.Compare(key) })
	if !found {
		return nil
	}
	return &in.Present[at]
}

// compare observes VPP with the function read and plans a repair. It returns the withheld ends and the plan.
// The plan is nil if no intent is stored or VPP cannot be read.
func (e *Engine) compare(ctx context.Context, stored *intent.Intent, read observeFunc) (map[intent.Key]*plan.Reason, *plan.Plan, *earlyPlan) {
	var withheld map[intent.Key]*plan.Reason
	if stored != nil {
		withheld = e.backoff.withheld(stored, e.now())
	}
	withhold := e.contested
	if e.options.Repair == ReportOnly {
		withhold = e.settled.drifted
	}
	early := e.planEarly(ctx, read, stored, nil, withheld, withhold)
	session, snapshot, todo, err := early.wait()
	if err != nil {
		e.lastClean = cleanPlan{}
		e.log.Warn("drift check failed", "error", err)
		return nil, nil, nil
	}
	if todo != nil {
		e.noteTagged(snapshot, todo)
	}
	e.lastClean.note(session, todo)
	return withheld, todo, early
}

// contested returns the ends that have to wait because another client undoes their repairs.
func (e *Engine) contested(ops []plan.Op) map[intent.Key]*plan.Reason {
	now := e.now()
	for _, op := range e.contests.found(ops, now) {
		e.log.Warn("another client changed a repaired field again", "end", op.End.String(), "object", op.Drift.Object,
			"field", op.Drift.Field, "desired", op.Drift.Desired, "actual", op.Drift.Actual)
		e.notify()
	}
	return e.contests.waiting(ops, now)
}

const (
	// soonest is the pause between a change and the next comparison. It is short, because an end
	// may wait for a port that appears seconds after a restart of VPP.
	soonest = 2 * time.Second
	// driftEvery is the longest pause between two comparisons. It applies when nothing has changed
	// for some time.
	driftEvery = 30 * time.Second
	// settle is the pause between an interface event and the observation. The agent waits because
	// events come in groups. crowded is the shortest pause between an observation and the next
	// observation that an event causes.
	settle  = 100 * time.Millisecond
	crowded = time.Second
)

// pace is the pause before the next comparison. After a change, it has the value of soonest. It doubles after
// each comparison without a change, up to driftEvery.
type pace time.Duration

func (p *pace) changed() { *p = pace(soonest) }

func (p *pace) unchanged() { *p = min(2**p, pace(driftEvery)) }

// Serve works with one session until ctx ends. It converges at once, because VPP may have restarted and lost
// everything. Then it observes, compares and repairs: after interface events, after a request of Rebuild, and
// otherwise after a pause of at most 30 s (pace).
func (e *Engine) Serve(ctx context.Context, session *vpp.Session) {
	e.eventsWaiting = func() bool { return len(session.Events()) > 0 }
	e.Attach(session)
	defer func() {
		e.Attach(nil)
		e.notify()
	}()
	e.readPaths(ctx)
	go e.options.Paths.follow(ctx, session.PathEvents())
	e.notify()
	e.tidyTests(ctx, session)
	e.convergeNewConnection(ctx)
	wait, observedAt, pending := pace(soonest), time.Now(), false
	due := observedAt.Add(soonest) // time of the next quick observation
	timer := time.NewTimer(soonest)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-session.Events():
			e.noteEvent(uint32(event.SwIfIndex), len(session.Events()), cap(session.Events()))
			if !pending {
				pending = true
				timer.Reset(max(settle, crowded-time.Since(observedAt)))
			}
		case <-e.rebuildRequested:
			timer.Reset(0)
		case <-timer.C:
			if pending && time.Now().Before(due) {
				repaired, waits := e.repairAfterEvents(ctx)
				if observedAt = time.Now(); repaired || waits { // the object that an end waits for may appear soon, and not every change causes an event
					wait.changed()
					due = observedAt.Add(time.Duration(wait))
				}
			} else {
				repaired := e.repair(ctx)
				if observedAt = time.Now(); repaired || pending {
					wait.changed()
				} else {
					wait.unchanged()
				}
				due = observedAt.Add(time.Duration(wait))
			}
			if pending {
				e.notify()
			}
			pending = false
			timer.Reset(time.Until(due))
		}
	}
}
