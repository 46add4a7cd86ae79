package converge

import (
	"context"
	"time"

	"longline.dev/agent/internal/vpp"
)

// driftEvery is how often VPP is compared with the held intent.
const driftEvery = 30 * time.Second

// Serve works with one session until it ends: converge at once, because a VPP that was away may have
// restarted and keeps nothing, then repair drift every 30 s.
func (e *Engine) Serve(ctx context.Context, session *vpp.Session) {
	e.Attach(session)
	e.notify()
	defer func() {
		e.Attach(nil)
		e.notify()
	}()
	e.Converge(ctx)
	ticker := time.NewTicker(driftEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-session.Events():
			e.notify()
		case <-ticker.C:
			e.repair(ctx)
		}
	}
}

// repair converges when VPP differs from the held intent.
func (e *Engine) repair(ctx context.Context) {
	held, _ := e.store.Held()
	if held == nil {
		return
	}
	todo, _, err := e.Look(ctx, held)
	if err != nil {
		e.log.Warn("drift check failed", "error", err)
		return
	}
	if len(todo.Ops) == 0 {
		return
	}
	e.mu.Lock()
	e.totals.Repairs++
	e.mu.Unlock()
	for _, op := range todo.Ops {
		e.log.Warn("drift", "end", op.End.String(), "object", op.Drift.Object, "field", op.Drift.Field,
			"desired", op.Drift.Desired, "actual", op.Drift.Actual)
	}
	e.Converge(ctx)
}
