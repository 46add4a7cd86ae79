package converge

import (
	"context"
	"slices"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/plan"
)

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
