package converge

import (
	"maps"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/plan"
)

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
