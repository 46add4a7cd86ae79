package converge

import (
	"context"
	"fmt"
	"time"

	"longline.dev/agent/internal/freeze"
	"longline.dev/agent/internal/intent"
)

// FrozenError says that nothing is changed in VPP, on somebody's word.
type FrozenError struct{ freeze.Freeze }

func (e *FrozenError) Error() string {
	return fmt.Sprintf("this router is frozen by the %s (%s) until %s; nothing was changed", e.By, e.Reason, time.UnixMilli(e.UntilMS).UTC().Format(time.RFC3339))
}

// FreezeHere leaves VPP alone until then, on the word of an operator on the router. What is being done is done to its end
// first. Error: as of freeze.File.Begin.
func (e *Engine) FreezeHere(reason string, until time.Time) (*freeze.Freeze, error) {
	e.busy.Lock()
	defer e.busy.Unlock()
	begun, err := e.Frozen.BeginHere(reason, until)
	if err != nil {
		return nil, err
	}
	e.log.Warn("frozen", "by", begun.By, "reason", begun.Reason, "until", time.UnixMilli(begun.UntilMS).UTC())
	e.notify()
	return begun, nil
}

// Unfreeze ends the freeze before its time, whoever began it. Nothing is repaired still, where something is to be: the portal
// shows it, and sends the intent when somebody has looked. Error: as of freeze.File.End.
func (e *Engine) Unfreeze() error {
	e.busy.Lock()
	defer e.busy.Unlock()
	if err := e.Frozen.End(); err != nil {
		return err
	}
	e.log.Warn("the freeze is ended")
	e.forceFullLook()
	e.notify()
	return nil
}

// PortalFreezes hears what the portal wants: a freeze by its id, or none for "".
func (e *Engine) PortalFreezes(id, reason string, until time.Time) {
	held := e.Frozen.Held()
	var err error
	switch {
	case id == "":
		if held == nil || held.By != freeze.ByPortal || held.Over(e.now()) {
			return
		}
		err = e.Unfreeze()
	case held != nil && held.ID == id && (held.Over(e.now()) || held.UntilMS == until.UnixMilli()), !until.After(e.now()):
		return
	default:
		e.busy.Lock()
		defer e.busy.Unlock()
		_, err = e.Frozen.Begin(id, freeze.ByPortal, reason, until)
		if err == nil {
			e.log.Warn("frozen", "by", freeze.ByPortal, "reason", reason, "until", until.UTC())
			e.notify()
		}
	}
	if err != nil {
		e.log.Error("the portal's word about a freeze is not followed", "error", err)
	}
}

// frozen is the error that keeps everything from being done in VPP; nil for none. One that is over keeps nobody who asks
// from anything, but drift is left alone until then.
func (e *Engine) frozen() error {
	if held := e.Frozen.Held(); held != nil && !held.Over(e.now()) {
		return &FrozenError{*held}
	}
	return nil
}

// thaw is frozen for an intent: after a freeze, the portal sends one when somebody has looked.
func (e *Engine) thaw() error {
	if err := e.frozen(); err != nil {
		return err
	}
	if e.Frozen.Held() == nil {
		return nil
	}
	e.log.Info("somebody has looked at what changed during the freeze; the portal has sent an intent")
	return e.Frozen.Looked()
}

// leftAlone reports whether VPP is only looked at: while it is frozen and afterwards, until somebody has looked. Where a freeze is
// over and nothing differs, there is nothing to look at; with busy.
func (e *Engine) leftAlone(ctx context.Context, held *intent.Intent) bool {
	frozen := e.Frozen.Held()
	if frozen == nil {
		return false
	}
	e.keepPathsWatched(ctx, func(intent.Path) bool { return false })
	_, todo, _ := e.compare(ctx, held, e.fullLook)
	if todo == nil || !frozen.Over(e.now()) || e.unfinished || len(todo.Ops) > 0 {
		return true
	}
	for _, end := range held.Present {
		if reason := todo.Blocked[end.Key]; reason != nil && e.wasSettled(end.Key) {
			return true
		}
	}
	if err := e.Frozen.Looked(); err != nil {
		e.log.Error("the freeze is over and stays, for the disk does not take it", "error", err)
		return true
	}
	e.log.Info("the freeze is over, and nothing was changed meanwhile")
	e.notify()
	return false
}

// wasSettled reports whether the end was where it should be before.
func (e *Engine) wasSettled(key intent.Key) bool { return e.settled.all || e.settled.ends[key] }
