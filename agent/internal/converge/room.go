package converge

import (
	"maps"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/own"
	"longline.dev/agent/internal/plan"
)

// diff plans as plan.Diff does, and leaves out what VPP has no room for: a VPP without room aborts, and takes
// down every VLL with it.
func (e *Engine) diff(in *intent.Intent, s *observe.Snapshot, journal own.Journal, withheld map[intent.Key]*plan.Reason) *plan.Plan {
	return e.withinRoom(plan.Diff(in, s, journal, withheld), in, s, journal, withheld)
}

// diffAgain is diff for what a plan that has been carried out left to do.
func (e *Engine) diffAgain(
	done *plan.Plan, in *intent.Intent, s *observe.Snapshot, journal own.Journal, withheld map[intent.Key]*plan.Reason,
) *plan.Plan {
	return e.withinRoom(done.Again(in, s, journal, withheld), in, s, journal, withheld)
}

// diffFor is diff that plans for these VLLs alone where the last plan through this session left nothing to do.
func (e *Engine) diffFor(
	session Session, vlls map[string]bool, in *intent.Intent, s *observe.Snapshot, journal own.Journal,
	withheld map[intent.Key]*plan.Reason,
) *plan.Plan {
	if e.clean.plan == nil || e.clean.session != session {
		return e.diff(in, s, journal, withheld)
	}
	return e.withinRoom(e.clean.plan.For(vlls, in, s, journal, withheld), in, s, journal, withheld)
}

func (e *Engine) withinRoom(
	todo *plan.Plan, in *intent.Intent, s *observe.Snapshot, journal own.Journal, withheld map[intent.Key]*plan.Reason,
) *plan.Plan {
	if e.Room == nil || len(todo.Creations) == 0 {
		return todo
	}
	room, err := e.Room(s.Boot.MS, len(s.Interfaces))
	if err != nil {
		e.log.Warn("VPP's room for interfaces is not known", "error", err)
		return todo
	}
	beyond := todo.BeyondRoom(in, room)
	if len(beyond) == 0 {
		return todo
	}
	e.log.Error("VPP's stats segment has no room", "interfaces", room, "ends_waiting", len(beyond))
	maps.Copy(beyond, withheld)
	return plan.Diff(in, s, journal, beyond)
}
