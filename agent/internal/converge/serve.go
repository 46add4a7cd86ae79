package converge

import (
	"context"
	"time"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/plan"
	"longline.dev/agent/internal/vpp"
)

const (
	// soonest is the pause before VPP is compared again after something happened: a port that an end waits
	// for may follow a restart of VPP by seconds.
	soonest = 2 * time.Second
	// driftEvery is the pause when nothing happens, and the one after which refused operations are tried again.
	driftEvery = 30 * time.Second
)

// pace is how long to wait for the next comparison: short after news, doubling while there are none.
type pace time.Duration

func (p *pace) news() { *p = pace(soonest) }

func (p *pace) quiet() { *p = min(2**p, pace(driftEvery)) }

func (p *pace) slowest() bool { return *p == pace(driftEvery) }

// Serve works with one session until it ends: converge at once, because a VPP that was away may have
// restarted and keeps nothing, then compare and repair, soon after each interface event and every 30 s.
func (e *Engine) Serve(ctx context.Context, session *vpp.Session) {
	e.Attach(session)
	e.notify()
	defer func() {
		e.Attach(nil)
		e.notify()
	}()
	e.Converge(ctx)
	wait := pace(soonest)
	timer := time.NewTimer(soonest)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-session.Events():
			e.notify()
			if wait != pace(soonest) {
				wait.news()
				timer.Reset(time.Duration(wait))
			}
		case <-timer.C:
			if e.repair(ctx, wait.slowest()) {
				wait.news()
			} else {
				wait.quiet()
			}
			timer.Reset(time.Duration(wait))
		}
	}
}

// repair converges when VPP differs from the held intent, and says whether it did. Ends whose operations
// were refused, or did not show when read back, count only if again is set.
func (e *Engine) repair(ctx context.Context, again bool) bool {
	held, _ := e.store.Held()
	if held == nil {
		return false
	}
	todo, _, err := e.Look(ctx, held)
	if err != nil {
		e.log.Warn("drift check failed", "error", err)
		return false
	}
	open := e.open(todo.Ops, again)
	if len(open) == 0 {
		return false
	}
	e.mu.Lock()
	e.totals.Repairs++
	e.mu.Unlock()
	for _, op := range open {
		e.log.Warn("drift", "end", op.End.String(), "object", op.Drift.Object, "field", op.Drift.Field,
			"desired", op.Drift.Desired, "actual", op.Drift.Actual)
	}
	e.Converge(ctx)
	return true
}

// open are the operations that are worth an attempt now.
func (e *Engine) open(ops []plan.Op, again bool) []plan.Op {
	if again {
		return ops
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var open []plan.Op
	for _, op := range ops {
		if !e.stuck[op.End] {
			open = append(open, op)
		}
	}
	return open
}

// stuckEnds are those that an attempt did not bring where they should be.
func stuckEnds(o *Outcome) map[intent.Key]bool {
	stuck := make(map[intent.Key]bool)
	for _, end := range o.Ends {
		if end.Reason != nil && (end.Status == "failed" || end.Reason.Code == "verify_mismatch") {
			stuck[end.Key] = true
		}
	}
	return stuck
}
