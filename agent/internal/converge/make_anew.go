package converge

import (
	"context"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/plan"
)

// MakeAnew asks for a sub-interface of an end to be deleted and made again, with all that belongs to it. Serve does so
// soon, if it still bears that name, is the agent's and serves its end, and nothing else is to be done. Under Hold nothing
// is done: what is wrong with it is somebody else's doing. It waits for nothing.
func (e *Engine) MakeAnew(index uint32, name string) {
	if e.Repair == Hold || e.Frozen.Held() != nil {
		return
	}
	e.mu.Lock()
	if e.anew == nil {
		e.anew = make(map[uint32]string)
	}
	e.anew[index] = name
	e.mu.Unlock()
	select {
	case e.anewAsked <- struct{}{}:
	default:
	}
}

func (e *Engine) anewWanted() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.anew) > 0
}

// makeAnew makes what MakeAnew asked for, each once, from a full look that showed nothing else to do; with busy. It
// reports whether there was something to do.
func (e *Engine) makeAnew(ctx context.Context, held *intent.Intent, withheld map[intent.Key]*plan.Reason, early *earlyPlan) bool {
	e.mu.Lock()
	asked := e.anew
	e.anew = nil
	e.mu.Unlock()
	anew := make(map[uint32]bool)
	for index, name := range asked {
		if i := early.snapshot.ByIndex(index); i != nil && i.Name == name && i.IsSub() {
			anew[index] = true
		}
	}
	if len(anew) == 0 {
		return false
	}
	journal := e.journal.Of(early.snapshot.Boot)
	todo := plan.DiffAnew(e.asThisRouterWants(held), early.snapshot, journal, withheld, anew)
	todo = e.withinInterfaceLimit(todo, e.asThisRouterWants(held), early.snapshot, journal, withheld)
	if len(todo.Ops) == 0 {
		return false
	}
	for _, op := range todo.Ops {
		if op.Stage == plan.Delete {
			e.log.Warn("made anew: frames came to its port, and none with its VLAN", "end", op.End.String(), "object", op.Action.Target().Name)
		}
	}
	early.todo = todo
	e.convergeLocked(ctx, held, nil, withheld, early)
	return true
}
