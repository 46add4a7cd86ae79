package converge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"longline.dev/agent/internal/freeze"
	"longline.dev/agent/internal/intent"
)

// FrozenError reports that nothing may be changed in VPP because of a freeze. If Over is set, the freeze
// has ended, but no operator has reviewed the differences yet.
type FrozenError struct {
	freeze.Freeze
	Over bool
}

func (e *FrozenError) Error() string {
	if e.Over {
		return fmt.Sprintf("the freeze of this router by the %s (%s) is over, but nobody has reviewed the differences; nothing was changed", e.By, e.Reason)
	}
	return fmt.Sprintf("this router is frozen by the %s (%s) until %s; nothing was changed", e.By, e.Reason, time.UnixMilli(e.UntilMS).UTC().Format(time.RFC3339))
}

// longestTest is longer than any activation test of a line in service.
const longestTest = 90 * time.Second

// freezeWait identifies an activation test that delays a freeze, by the tested end and its revision.
type freezeWait struct {
	intent.Key
	revision int32
}

// TestUnderWayError reports that a line is under test: a freeze now would leave it without a connection.
type TestUnderWayError struct{ VLL string }

func (e *TestUnderWayError) Error() string {
	return fmt.Sprintf("VLL %s is being tested, and would carry nothing while this router is frozen; try again in a minute", e.VLL)
}

// FreezeHere freezes VPP until the given time, at the request of an operator on the router. It first waits
// for running work. It returns *TestUnderWayError, ErrStopping, or errors of freeze.File.Begin.
func (e *Engine) FreezeHere(reason string, until time.Time) (*freeze.Freeze, error) {
	return e.freeze(uuid.NewString(), freeze.ByRouter, reason, until)
}

func (e *Engine) freeze(id, by, reason string, until time.Time) (*freeze.Freeze, error) {
	if err := e.begin(); err != nil {
		return nil, err
	}
	defer e.busy.Unlock()
	if err := e.testUnderWay(); err != nil {
		return nil, err
	}
	begun, err := e.options.Frozen.Begin(id, by, reason, until)
	if err != nil {
		return nil, err
	}
	e.log.Warn("frozen", "by", begun.By, "reason", begun.Reason, "until", time.UnixMilli(begun.UntilMS).UTC())
	e.notify()
	return begun, nil
}

// Unfreeze ends the freeze early. It does not matter whether the freeze was requested on the router
// or in the portal. The agent does not repair differences yet: the portal shows the differences,
// and sends the intent when an operator has reviewed them. It returns ErrStopping, or errors of
// freeze.File.End.
func (e *Engine) Unfreeze() error {
	if err := e.begin(); err != nil {
		return err
	}
	defer e.busy.Unlock()
	if err := e.options.Frozen.End(); err != nil {
		return err
	}
	e.log.Warn("the freeze is ended")
	e.forceFullObservation()
	e.notify()
	return nil
}

// PortalFreezes applies the portal's request for a freeze with this id. If id is "", the portal requests no
// freeze, and PortalFreezes ends a freeze that the portal has requested. The portal repeats its
// request. So if a freeze is not possible now, it can be applied later, for example after an
// activation test, or after the end of a freeze that was requested on the router.
func (e *Engine) PortalFreezes(id, reason string, until time.Time) {
	current := e.options.Frozen.Current()
	over := current != nil && current.Over(e.now())
	var err error
	switch {
	case id == "":
		if current == nil || current.By != freeze.ByPortal || over {
			return
		}
		err = e.Unfreeze()
	case !until.After(e.now()), current != nil && current.By == freeze.ByRouter && !over,
		current != nil && current.ID == id && (over || current.UntilMS == until.UnixMilli() && current.Reason == reason):
		return
	default:
		_, err = e.freeze(id, freeze.ByPortal, reason, until)
	}
	if _, delayed := errors.AsType[*TestUnderWayError](err); err != nil && !delayed {
		e.log.Error("the portal's freeze cannot be applied", "error", err)
	}
}

// testUnderWay returns *TestUnderWayError while an activation test may interrupt a line in service. The
// caller holds the mutex busy. The portal ends such a test within a minute. If a test takes longer
// than longestTest, it waits for the line's other router. The line is then not in service, so the
// test does not delay a freeze.
func (e *Engine) testUnderWay() error {
	var err error
	running := make(map[freezeWait]time.Time)
	for _, end := range e.storedOrEmpty().Present {
		if !end.Testing || end.IsProbe() {
			continue
		}
		tested := freezeWait{end.Key, end.Revision}
		since, known := e.freezeWaits[tested]
		if !known {
			since = e.now()
		}
		running[tested] = since
		if e.now().Sub(since) < longestTest {
			err = &TestUnderWayError{end.VLL}
		}
	}
	e.freezeWaits = running
	return err
}

// frozen returns *FrozenError while the router is frozen. After the end of the freeze it returns
// nil, even if no operator has reviewed the differences yet.
func (e *Engine) frozen() error {
	if current := e.options.Frozen.Current(); current != nil && !current.Over(e.now()) {
		return &FrozenError{Freeze: *current}
	}
	return nil
}

// frozenFor returns *FrozenError if an intent must not be applied. This is the case during a
// freeze, and after the freeze unless reviewed is the id of the freeze. With this id, the portal
// confirms that an operator has reviewed the differences.
func (e *Engine) frozenFor(reviewed string) error {
	current := e.options.Frozen.Current()
	if current == nil || current.Over(e.now()) && current.ID == reviewed {
		return nil
	}
	return &FrozenError{*current, current.Over(e.now())}
}

// mustNotChange reports whether VPP may only be observed. This is the case during a freeze, and
// after the freeze until an operator has reviewed the differences. If a freeze has ended without
// differences, no review is necessary, and mustNotChange removes the freeze. The caller holds the
// mutex busy.
func (e *Engine) mustNotChange(ctx context.Context, stored *intent.Intent) bool {
	frozen := e.options.Frozen.Current()
	if frozen == nil {
		return false
	}
	e.keepPathsWatched(ctx, func(intent.Path) bool { return false })
	over := frozen.Over(e.now())
	if e.differs(ctx, stored, e.quickObservation) || !over || e.unfinished || e.differs(ctx, stored, e.fullObservation) {
		return true
	}
	if err := e.options.Frozen.Forget(); err != nil {
		e.log.Error("the freeze is over, but cannot be removed from disk", "error", err)
		return true
	}
	e.log.Info("the freeze is over, and VPP has no differences")
	e.notify()
	return false
}

// differs reports whether VPP differs from the stored intent, or cannot be observed. It ignores blocked ends
// that had not reached their intended state before.
func (e *Engine) differs(ctx context.Context, stored *intent.Intent, read observeFunc) bool {
	_, todo, _ := e.compare(ctx, stored, read)
	if todo == nil || len(todo.Ops) > 0 {
		return true
	}
	return slices.ContainsFunc(stored.Present, func(end intent.End) bool {
		return todo.Blocked[end.Key] != nil && e.settled.maybe(end.Key)
	})
}
