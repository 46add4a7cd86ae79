package converge

import (
	"context"
	"slices"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/plan"
)

// partialObservation (observe.Partial) reads what a document that differs from the one before in these VLLs is about: their
// interfaces, everything that is not the agent's work, and all cross-connects and bridges. The rest is the agent's own
// work, of which a quick look at most driftEvery ago showed that it is as it should be or what is to be done about it;
// the next quick look looks again. It is nil where that is not enough: after too long, after an interface has come or
// gone, or when a plan made from it is about other VLLs too. Nothing is done to an interface that was not read for it.
func (e *Engine) partialObservation(ctx context.Context, session Session, in *intent.Intent, vlls map[string]bool) (*observe.Snapshot, error) {
	e.mu.Lock()
	old, fresh := e.seen.snapshot, e.now().Sub(e.seen.quickObservationAt) < driftEvery && e.now().Sub(e.seen.fullObservationAt) < e.FullObservation
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
	if snapshot, err = e.askUseOfPorts(ctx, session, snapshot, []*intent.Intent{in}); err != nil {
		return nil, err
	}
	e.remember(session, snapshot, extentPartial)
	return snapshot, nil
}

// readFor are the interfaces of these VLLs and those that bear no tag of the agent, but for local0, which takes no
// part in anything: its index stands for all of them in a dump.
func readFor(s *observe.Snapshot, vlls map[string]bool) map[uint32]bool {
	read := make(map[uint32]bool)
	for _, i := range s.Interfaces {
		if tag, ours := ownership.ParseTag(i.Tag); i.Index != 0 && (!ours || vlls[tag.VLL]) {
			read[i.Index] = true
		}
	}
	return read
}

// differing are the VLLs of which the documents say something else; both are sorted.
func differing(before, in *intent.Intent) map[string]bool {
	differ := make(map[string]bool)
	onlyIn(before.Present, in.Present, differ, func(e intent.End) intent.Key { return e.Key })
	onlyIn(in.Present, before.Present, differ, func(e intent.End) intent.Key { return e.Key })
	onlyIn(before.Removed, in.Removed, differ, func(r intent.Tombstone) intent.Key { return r.Key })
	onlyIn(in.Removed, before.Removed, differ, func(r intent.Tombstone) intent.Key { return r.Key })
	return differ
}

// onlyIn notes the VLLs of what stands in a and not, or otherwise, in b.
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

// aboutOthers reports whether a plan is about other VLLs than these.
func aboutOthers(todo *plan.Plan, vlls map[string]bool) bool {
	return slices.ContainsFunc(todo.Ops, func(op plan.Op) bool { return !vlls[op.End.VLL] })
}
