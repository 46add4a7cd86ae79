package converge

import (
	"context"
	"errors"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/plan"
)

// ErrNotRepaired reports that this agent only reports drift, or that the router is frozen.
var ErrNotRepaired = errors.New("converge: nothing is repaired: the agent's file says drift: hold, or the router is frozen")

// Rebuild requests that a sub-interface of an end is deleted and created again, with all objects
// that depend on it. Rebuild returns immediately, and Serve carries out the request soon, when
// there is nothing else to do. At that time, the sub-interface must still have the given name,
// belong to the agent and serve its end. Otherwise the request has no effect.
//
// requested means that an operator has requested the rebuild. Such a request is allowed even under ReportOnly.
// Rebuild returns ErrNotRepaired if the policy or a freeze does not allow the rebuild.
func (e *Engine) Rebuild(index uint32, name string, requested bool) error {
	if e.options.Repair == ReportOnly && !requested || e.options.Frozen.Current() != nil {
		return ErrNotRepaired
	}
	e.mu.Lock()
	if e.rebuilds == nil {
		e.rebuilds = make(map[uint32]string)
	}
	e.rebuilds[index] = name
	e.mu.Unlock()
	select {
	case e.rebuildRequested <- struct{}{}:
	default:
	}
	return nil
}

func (e *Engine) rebuildsWanted() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.rebuilds) > 0
}

// rebuild carries out the pending requests of Rebuild and forgets them. early must contain a full observation
// without differences. The caller holds the mutex busy. rebuild reports whether it converged.
func (e *Engine) rebuild(ctx context.Context, stored *intent.Intent, withheld map[intent.Key]*plan.Reason, early *earlyPlan) bool {
	e.mu.Lock()
	requested := e.rebuilds
	e.rebuilds = nil
	e.mu.Unlock()
	rebuilt := make(map[uint32]bool)
	for index, name := range requested {
		if i := early.snapshot.ByIndex(index); i != nil && i.Name == name && i.IsSub() {
			rebuilt[index] = true
		}
	}
	if len(rebuilt) == 0 {
		return false
	}
	journal := e.journal.Of(early.snapshot.Boot)
	todo := plan.DiffRebuild(e.asThisRouterWants(stored), early.snapshot, journal, withheld, rebuilt)
	todo = e.withinInterfaceLimit(todo, e.asThisRouterWants(stored), early.snapshot, journal, withheld)
	if len(todo.Ops) == 0 {
		return false
	}
	for _, op := range todo.Ops {
		if op.Stage == plan.Delete {
			e.log.Warn("rebuilt", "end", op.End.String(), "object", op.Action.Target().Name)
		}
	}
	early.todo = todo
	e.convergeLocked(ctx, stored, nil, withheld, early)
	return true
}
