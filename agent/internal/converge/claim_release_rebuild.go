package converge

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"longline.dev/agent/internal/apply"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/plan"
)

// NotRelabelledError says why there is nothing to claim or to release.
type NotRelabelledError struct{ Why string }

func (e *NotRelabelledError) Error() string { return e.Why }

// NotClaimedError says why a claim or a release was not carried out: VPP refused a request, or the interface
// has changed meanwhile.
type NotClaimedError struct{ Reason *plan.Reason }

func (e *NotClaimedError) Error() string { return e.Reason.Message }

// noteTagged records in the journal which interfaces have the agent's tag. The caller holds the mutex busy.
func (e *Engine) noteTagged(s *observe.Snapshot, p *plan.Plan) {
	marked, gone := p.TagChanges(s, e.journal.Of(s.Boot).Tagged)
	if err := e.journal.Tag(s.Boot, marked, gone); err != nil {
		e.log.Warn("the record of tagged interfaces is not on disk: after a restart of the agent, interfaces that are relabelled until then count as foreign",
			"error", err)
	}
}

// Claim carries out an operator's decision to put the agent's tag back on interfaces of an end. The agent
// created these interfaces for the end, and another client has changed their tags since. If name is "", Claim
// does this for all such interfaces of the end, otherwise only for the interface with that name. It
// returns these interfaces. After Claim, the agent maintains the end again. Errors:
// *NotRelabelledError,
// *NotClaimedError, *FrozenError, ErrNoVPP, ErrStopping or an error of the connection.
func (e *Engine) Claim(ctx context.Context, end intent.Key, name string) ([]*plan.EndInterface, error) {
	return e.decide(ctx, end, name, "claimed", func(session Session, s *observe.Snapshot, found []*plan.EndInterface) error {
		var ops []plan.Op
		for _, h := range found {
			ops = append(ops, h.Reclaim())
		}
		return e.send(ctx, session, s, ops)
	})
}

// Release carries out an operator's decision to give up interfaces of an end. The agent created these
// interfaces for the end, and another client has changed their tags since. If name is "", Release does this
// for all such interfaces of the end, otherwise only for the interface with that name. It returns these
// interfaces.
//
// Release removes the interfaces from the agent's records, so that they count as foreign. It also
// removes the agent's policer from these interfaces, because the agent deletes the policer together
// with the end. Otherwise the interfaces stay unchanged. Release returns the errors of Claim, or an
// error if the record could not be written to disk.
func (e *Engine) Release(ctx context.Context, end intent.Key, name string) ([]*plan.EndInterface, error) {
	return e.decide(ctx, end, name, "released", func(session Session, s *observe.Snapshot, found []*plan.EndInterface) error {
		var ops []plan.Op
		var gone []uint32
		for _, h := range found {
			policed, err := s.IsPoliced(ctx, session, h.Interface)
			if err != nil {
				return err
			}
			if op, needed := h.TakePolicerOff(s, policed); needed {
				ops = append(ops, op)
			}
			gone = append(gone, h.Interface.Index)
		}
		if err := e.send(ctx, session, s, ops); err != nil {
			return err
		}
		if err := e.journal.Tag(s.Boot, nil, gone); err != nil {
			return fmt.Errorf("it is released until the agent starts again, and then counts as relabelled: %w", err)
		}
		return nil
	})
}

// decide calls the function do, which carries out an operator's decision about relabelled interfaces. Then
// decide repairs the differences that result from the decision.
func (e *Engine) decide(
	ctx context.Context, end intent.Key, name, decision string, do func(Session, *observe.Snapshot, []*plan.EndInterface) error,
) ([]*plan.EndInterface, error) {
	ctx = context.WithoutCancel(ctx) // a half-finished decision is worse than a complete one
	found, err := func() ([]*plan.EndInterface, error) {
		if err := e.begin(); err != nil {
			return nil, err
		}
		defer e.busy.Unlock()
		if err := e.frozen(); err != nil {
			return nil, err
		}
		session, err := e.Session()
		if err != nil {
			return nil, err
		}
		s, err := e.fullObservation(ctx, session)
		if err != nil {
			return nil, err
		}
		todo := e.diff(e.storedOrEmpty(), s, e.journal.Of(s.Boot), nil)
		found, err := relabelled(todo, s, end, name)
		if err != nil {
			return nil, err
		}
		defer e.forceFullObservation()
		if err := do(session, s, found); err != nil {
			return nil, err
		}
		for _, h := range found {
			e.log.Warn(decision+" by an operator", "end", end.String(), "object", plan.Describe(h.Interface), "tag_before", h.Interface.Tag)
		}
		return found, nil
	}()
	if err == nil {
		e.repair(ctx)
		e.notify()
	}
	return found, err
}

// send carries out operations that do not follow from an intent.
func (e *Engine) send(ctx context.Context, session Session, s *observe.Snapshot, ops []plan.Op) error {
	if len(ops) == 0 {
		return nil
	}
	result, err := apply.Run(ctx, countingSession{session, e}, ops, s, nil, &rereader{e, session, s, targets(ops)})
	if err != nil {
		return err
	}
	for _, reason := range result.Failed {
		return &NotClaimedError{reason}
	}
	return nil
}

// relabelled returns the relabelled interfaces of the end. If name is not "", it returns only the
// interface with that name. It returns *NotRelabelledError if there is no such interface.
func relabelled(todo *plan.Plan, s *observe.Snapshot, end intent.Key, name string) ([]*plan.EndInterface, error) {
	var found []*plan.EndInterface
	for _, h := range todo.Relabelled {
		if h.End == end && (name == "" || name == h.Interface.Name) {
			found = append(found, h)
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	return nil, &NotRelabelledError{whyNot(todo, s, end, name)}
}

func whyNot(todo *plan.Plan, s *observe.Snapshot, end intent.Key, name string) string {
	if name == "" {
		var owned []string
		for _, h := range todo.Owned {
			if h.End == end {
				owned = append(owned, plan.Describe(h.Interface))
			}
		}
		if len(owned) > 0 {
			return fmt.Sprintf("nothing of VLL end %s is relabelled: %s is known to be its own; there is nothing to do", end, strings.Join(owned, ", "))
		}
		return fmt.Sprintf("nothing that was made for VLL end %s exists: it was deleted or released, or was made before VPP restarted; "+
			"`longline-agent state` lists what is relabelled", end)
	}
	i := s.ByName(name)
	if i == nil {
		return fmt.Sprintf("VPP has no interface %s; `longline-agent state` lists what is relabelled", name)
	}
	for _, h := range todo.Owned {
		switch {
		case h.Interface != i:
		case h.End == end:
			return fmt.Sprintf("%s is not relabelled: it is known to be of VLL end %s; there is nothing to do", plan.Describe(i), end)
		default:
			return fmt.Sprintf("%s belongs to VLL end %s and not to %s; nothing was changed", plan.Describe(i), h.End, end)
		}
	}
	for _, h := range todo.Relabelled {
		if h.Interface == i {
			return fmt.Sprintf("%s was made for VLL end %s and not for %s; nothing was changed", plan.Describe(i), h.End, end)
		}
	}
	return fmt.Sprintf("%s was not made by the agent in this run of VPP, or was released; nothing was changed", plan.Describe(i))
}

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
	todo := e.planBy(plan.DiffRebuild(rebuilt), stored, early.snapshot, e.journal.Of(early.snapshot.Boot), withheld)
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
