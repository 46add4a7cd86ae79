package converge

import (
	"context"
	"fmt"
	"time"

	"longline.dev/agent/internal/freeze"
	"longline.dev/agent/internal/intent"
)

// FrozenError says that nothing is changed in VPP, on somebody's word; or, of a freeze that is over, that nobody has looked yet.
type FrozenError struct {
	freeze.Freeze
	Over bool
}

func (e *FrozenError) Error() string {
	if e.Over {
		return fmt.Sprintf("the freeze of this router by the %s (%s) is over, and nobody has looked what it left; nothing was changed", e.By, e.Reason)
	}
	return fmt.Sprintf("this router is frozen by the %s (%s) until %s; nothing was changed", e.By, e.Reason, time.UnixMilli(e.UntilMS).UTC().Format(time.RFC3339))
}

// longestTest is longer than a line in service is tested for.
const longestTest = 90 * time.Second

// freezeWait is one revision of an end for which a freeze waits.
type freezeWait struct {
	intent.Key
	revision int32
}

// TestUnderWayError says that a line is being tested: frozen now, it would stay cut in two.
type TestUnderWayError struct{ VLL string }

func (e *TestUnderWayError) Error() string {
	return fmt.Sprintf("VLL %s is being tested, and would carry nothing while this router is frozen; try again in a minute", e.VLL)
}

// FreezeHere leaves VPP alone until then, on the word of an operator on the router. What is being done is done to its end
// first. Error: *TestUnderWayError, ErrStopping, or as of freeze.File.Begin.
func (e *Engine) FreezeHere(reason string, until time.Time) (*freeze.Freeze, error) {
	if err := e.begin(); err != nil {
		return nil, err
	}
	defer e.busy.Unlock()
	if err := e.testUnderWay(); err != nil {
		return nil, err
	}
	begun, err := e.Frozen.BeginHere(reason, until)
	if err != nil {
		return nil, err
	}
	e.log.Warn("frozen", "by", begun.By, "reason", begun.Reason, "until", time.UnixMilli(begun.UntilMS).UTC())
	e.notify()
	return begun, nil
}

// Unfreeze ends the freeze before its time, whoever began it. Nothing is repaired still, where something is to be: the portal
// shows it, and sends the intent when somebody has looked. Error: ErrStopping, or as of freeze.File.End.
func (e *Engine) Unfreeze() error {
	if err := e.begin(); err != nil {
		return err
	}
	defer e.busy.Unlock()
	if err := e.Frozen.End(); err != nil {
		return err
	}
	e.log.Warn("the freeze is ended")
	e.forceFullObservation()
	e.notify()
	return nil
}

// PortalFreezes hears what the portal wants: a freeze by its id, or none for "". It says so again and again: what cannot be
// now, because an operator on the router froze it or a line is being tested, can be later.
func (e *Engine) PortalFreezes(id, reason string, until time.Time) {
	held := e.Frozen.Held()
	over := held != nil && held.Over(e.now())
	var err error
	switch {
	case id == "":
		if held == nil || held.By != freeze.ByPortal || over {
			return
		}
		err = e.Unfreeze()
	case !until.After(e.now()), held != nil && held.By == freeze.ByRouter && !over,
		held != nil && held.ID == id && (over || held.UntilMS == until.UnixMilli() && held.Reason == reason):
		return
	default:
		err = e.portalFreezes(id, reason, until)
	}
	if err != nil {
		e.log.Error("the portal's word about a freeze is not followed", "error", err)
	}
}

func (e *Engine) portalFreezes(id, reason string, until time.Time) error {
	if err := e.begin(); err != nil {
		return err
	}
	defer e.busy.Unlock()
	if e.testUnderWay() != nil {
		return nil
	}
	if _, err := e.Frozen.Begin(id, freeze.ByPortal, reason, until); err != nil {
		return err
	}
	e.log.Warn("frozen", "by", freeze.ByPortal, "reason", reason, "until", until.UTC())
	e.notify()
	return nil
}

// testUnderWay is an error while a line in service may be cut in two for test frames; with busy. The portal gives such a test
// up within a minute: what is being tested for longer waits for its other router, and is not in service.
func (e *Engine) testUnderWay() error {
	var err error
	seen := make(map[freezeWait]time.Time)
	for _, end := range e.heldOrEmpty().Present {
		if !end.Testing || end.IsProbe() {
			continue
		}
		tested := freezeWait{end.Key, end.Revision}
		since, known := e.freezeWaits[tested]
		if !known {
			since = e.now()
		}
		seen[tested] = since
		if e.now().Sub(since) < longestTest {
			err = &TestUnderWayError{end.VLL}
		}
	}
	e.freezeWaits = seen
	return err
}

// frozen is the error that keeps everything from being done in VPP; nil for none, and for a freeze that is over.
func (e *Engine) frozen() error {
	if held := e.Frozen.Held(); held != nil && !held.Over(e.now()) {
		return &FrozenError{Freeze: *held}
	}
	return nil
}

// frozenFor is frozen for an intent whose sender says that somebody has looked what this freeze left.
func (e *Engine) frozenFor(looked string) error {
	held := e.Frozen.Held()
	if held == nil || held.Over(e.now()) && held.ID == looked {
		return nil
	}
	return &FrozenError{*held, held.Over(e.now())}
}

// leftAlone reports whether VPP is only looked at: while it is frozen and afterwards, until somebody has looked. Where a freeze is
// over and nothing differs, there is nothing to look at; with busy.
func (e *Engine) leftAlone(ctx context.Context, held *intent.Intent) bool {
	frozen := e.Frozen.Held()
	if frozen == nil {
		return false
	}
	e.keepPathsWatched(ctx, func(intent.Path) bool { return false })
	over := frozen.Over(e.now())
	if e.differs(ctx, held, e.quickObservation) || !over || e.unfinished || e.differs(ctx, held, e.fullObservation) {
		return true
	}
	if err := e.Frozen.Forget(); err != nil {
		e.log.Error("the freeze is over and stays, for the disk does not take it", "error", err)
		return true
	}
	e.log.Info("the freeze is over, and nothing is otherwise than it is wanted")
	e.notify()
	return false
}

// differs reports whether VPP is seen otherwise than it is wanted, where that was reached once, or cannot be seen.
func (e *Engine) differs(ctx context.Context, held *intent.Intent, look observeFunc) bool {
	_, todo, _ := e.compare(ctx, held, look)
	if todo == nil || len(todo.Ops) > 0 {
		return true
	}
	for _, end := range held.Present {
		if todo.Blocked[end.Key] != nil && e.settled.maybe(end.Key) {
			return true
		}
	}
	return false
}
