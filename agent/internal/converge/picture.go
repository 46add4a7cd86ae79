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

// Picture is VPP as it was last seen, compared with an intent. Nobody changes it once it is made.
type Picture struct {
	Look     int64          // which look at VPP it shows, see Status
	Intent   *intent.Intent // an empty one when none is held
	Plan     *plan.Plan
	Snapshot *observe.Snapshot
	// Drift are the differences that others made: those that are held, and those that were repaired since
	// somebody last asked for a picture.
	Drift map[intent.Key][]plan.Drift
	// Contested is what others change again after each repair.
	Contested map[intent.Key][]Contested
	// Made is, by index, after which look the agent last made an interface there; absent if it found it there.
	Made map[uint32]int64
}

// seen is what is known of VPP without asking it again.
type seen struct {
	look     int64
	snapshot *observe.Snapshot // nil: nothing
	fully    time.Time         // when all of it was last read
	glanced  time.Time         // when all that others can change was last read
	latest   *Picture          // of snapshot, made when it is first wanted
	repaired map[intent.Key][]plan.Drift
}

// Picture is VPP as it was last seen, against the intent now held. It asks VPP only when nothing is known of
// it; Serve keeps what is known fresh. Drift is shown once even if it has been repaired meanwhile: then
// Changed follows. Error: ErrNoVPP or that of the connection.
func (e *Engine) Picture(ctx context.Context) (*Picture, error) {
	if p := e.known(); p != nil {
		return p, nil
	}
	e.busy.Lock()
	defer e.busy.Unlock()
	if p := e.known(); p != nil {
		return p, nil
	}
	session, err := e.Session()
	if err != nil {
		return nil, err
	}
	look, snapshot := e.seenNow()
	if snapshot == nil {
		if _, err = e.take(ctx, session); err != nil {
			return nil, err
		}
		if look, snapshot = e.seenNow(); snapshot == nil {
			return nil, ErrNoVPP // the connection was replaced meanwhile
		}
	}
	p := &Picture{Look: look, Intent: e.heldOrEmpty(), Snapshot: snapshot}
	p.Plan = e.diff(p.Intent, snapshot, e.journal.Of(snapshot.Boot), nil)
	p.Drift, p.Contested = e.settled.drift(p.Plan.Ops), e.contests.now(p.Intent, e.now())
	e.mu.Lock()
	defer e.mu.Unlock()
	p.Made = maps.Clone(e.made)
	if e.seen.snapshot == snapshot {
		e.seen.latest = p
	}
	return e.withRepaired(p), nil
}

// withRepaired adds what was repaired since it was last called; with mu.
func (e *Engine) withRepaired(p *Picture) *Picture {
	if len(e.seen.repaired) == 0 {
		return p
	}
	told := *p
	told.Drift = maps.Clone(p.Drift)
	maps.Copy(told.Drift, e.seen.repaired)
	e.seen.repaired = nil
	return &told
}

// known is the picture that is there already, nil if it has to be made.
func (e *Engine) known() *Picture {
	held, _ := e.store.Held()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.session == nil || e.session.Err() != nil {
		return nil
	}
	if p := e.seen.latest; p != nil && (p.Intent == held || held == nil) {
		return e.withRepaired(p)
	}
	return nil
}

func (e *Engine) heldOrEmpty() *intent.Intent {
	if held, _ := e.store.Held(); held != nil {
		return held
	}
	return &intent.Intent{}
}

// seenNow is the number of the last look through the present connection and what it showed, nil for nothing.
func (e *Engine) seenNow() (int64, *observe.Snapshot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen.look, e.seen.snapshot
}

// nextLook numbers the looks at VPP; with mu. The numbers grow over restarts of the agent too, as long as its
// clock does not go back: they are microseconds since the Unix epoch.
func (e *Engine) nextLook() int64 { return max(e.seen.look+1, e.now().UnixMicro()) }

// take reads all of VPP.
func (e *Engine) take(ctx context.Context, session Session, ins ...*intent.Intent) (*observe.Snapshot, error) {
	epoch := e.epoch(session)
	snapshot, err := observe.Take(ctx, session, boot(session))
	if err == nil {
		snapshot.Epoch = epoch
		snapshot, err = e.askAbout(ctx, session, snapshot, ins)
	}
	if err == nil {
		e.see(session, snapshot, full)
	}
	return snapshot, err
}

// glance reads what others can change in place, and all of VPP when that is not enough or when FullLook has
// passed since it was last done.
func (e *Engine) glance(ctx context.Context, session Session, ins ...*intent.Intent) (*observe.Snapshot, error) {
	e.mu.Lock()
	old, fresh := e.seen.snapshot, e.now().Sub(e.seen.fully) < e.FullLook
	e.mu.Unlock()
	if old == nil || !fresh {
		return e.take(ctx, session, ins...)
	}
	epoch := e.epoch(session)
	snapshot, ok, err := observe.Glance(ctx, session, old, nil)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return e.take(ctx, session, ins...)
	}
	snapshot.Epoch = epoch
	if snapshot, err = e.askAbout(ctx, session, snapshot, ins); err != nil {
		return nil, err
	}
	e.see(session, snapshot, glance)
	return snapshot, nil
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

// askAbout asks for what others do with ports that the held intent or these want whole.
func (e *Engine) askAbout(ctx context.Context, session Session, s *observe.Snapshot, ins []*intent.Intent) (*observe.Snapshot, error) {
	return observe.AskAbout(ctx, session, s, plan.PortsToTake(s, append(ins, e.heldOrEmpty())...))
}

// see remembers a snapshot, nil to know nothing any more. What was seen through an earlier connection is of
// no use.
func (e *Engine) see(session Session, snapshot *observe.Snapshot, extent extent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.session != session {
		return
	}
	e.seen.look, e.seen.snapshot, e.seen.latest = e.nextLook(), snapshot, nil
	switch extent {
	case full:
		e.seen.fully, e.seen.glanced = e.now(), e.now()
		e.totals.FullLooks++
	case glance:
		e.seen.glanced = e.now()
		e.totals.Glances++
	case peek:
		e.totals.Peeks++
	}
}

// extent is how much of VPP was read.
type extent int

const (
	readBack extent = iota // what was changed
	peek
	glance
	full
)

// noteMade remembers what was made, so that its counters are not compared with those of what was there before.
func (e *Engine) noteMade(result *apply.Result) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, index := range result.Made {
		e.made[index] = e.seen.look
	}
}

// doubt makes the next look a full one.
func (e *Engine) doubt() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen.fully = time.Time{}
}
