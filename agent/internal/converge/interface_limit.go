package converge

import (
	"maps"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/plan"
)

// diff returns the result of plan.Diff with the settings of this router. It withholds ends that
// need more new interfaces than VPP has room for. If there were too many interfaces, VPP would
// abort and all VLLs would fail.
func (e *Engine) diff(in *intent.Intent, s *observe.Snapshot, journal ownership.Journal, withheld map[intent.Key]*plan.Reason) *plan.Plan {
	in, withheld = e.asThisRouterWants(in), e.withRefusedAdoptions(in, withheld)
	return e.withinInterfaceLimit(plan.Diff(in, s, journal, withheld), in, s, journal, withheld)
}

// asThisRouterWants returns the intent with the settings of the agent's configuration file.
func (e *Engine) asThisRouterWants(in *intent.Intent) *intent.Intent {
	if !e.options.PortMTUs {
		return in
	}
	local := *in
	local.PortMTUs = true
	return &local
}

// diffReplan plans again (plan.Plan.Replan) after the plan in the argument done was carried out. It
// uses the same settings and limits as diff.
func (e *Engine) diffReplan(
	done *plan.Plan, in *intent.Intent, s *observe.Snapshot, journal ownership.Journal, withheld map[intent.Key]*plan.Reason,
) *plan.Plan {
	in, withheld = e.asThisRouterWants(in), e.withRefusedAdoptions(in, withheld)
	return e.withinInterfaceLimit(done.Replan(in, s, journal, withheld), in, s, journal, withheld)
}

// diffFor returns the result of diff. If the last complete plan through this session left nothing
// to do, the result is for the given VLLs only, otherwise for all VLLs.
func (e *Engine) diffFor(
	session Session, vlls map[string]bool, in *intent.Intent, s *observe.Snapshot, journal ownership.Journal,
	withheld map[intent.Key]*plan.Reason,
) *plan.Plan {
	if e.lastClean.plan == nil || e.lastClean.session != session {
		return e.diff(in, s, journal, withheld)
	}
	in, withheld = e.asThisRouterWants(in), e.withRefusedAdoptions(in, withheld)
	return e.withinInterfaceLimit(e.lastClean.plan.ReplanFor(vlls, in, s, journal, withheld), in, s, journal, withheld)
}

func (e *Engine) withinInterfaceLimit(
	todo *plan.Plan, in *intent.Intent, s *observe.Snapshot, journal ownership.Journal, withheld map[intent.Key]*plan.Reason,
) *plan.Plan {
	if e.options.FreeInterfaces == nil || len(todo.CreationClaims) == 0 {
		return todo
	}
	free, err := e.options.FreeInterfaces(s.Boot.MS, len(s.Interfaces))
	if err != nil {
		e.log.Warn("the free space for interfaces in VPP is not known", "error", err)
		return todo
	}
	beyond := todo.BeyondInterfaceLimit(in, free)
	if len(beyond) == 0 {
		return todo
	}
	e.log.Error("VPP's stats segment has no room", "interfaces", free, "ends_waiting", len(beyond))
	maps.Copy(beyond, withheld)
	return plan.Diff(in, s, journal, beyond)
}

// withRefusedAdoptions returns the withheld ends. If the agent's configuration file does not allow
// adoption, it adds the ends that the portal wants to adopt. Otherwise a portal under an attacker's
// control could take over foreign interfaces and then delete them.
func (e *Engine) withRefusedAdoptions(in *intent.Intent, withheld map[intent.Key]*plan.Reason) map[intent.Key]*plan.Reason {
	if e.options.Adoption {
		return withheld
	}
	all := maps.Clone(withheld)
	for _, end := range in.Present {
		if end.Adopt && all[end.Key] == nil {
			if all == nil {
				all = make(map[intent.Key]*plan.Reason)
			}
			all[end.Key] = &plan.Reason{Status: "conflict", Code: "adoption_refused", Object: end.Access.Interface,
				Message: "this router's agent may not take over lines that others made: set `adoption: allowed` in its file, and start it again"}
		}
	}
	return all
}
