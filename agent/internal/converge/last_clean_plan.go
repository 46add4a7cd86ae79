package converge

import "longline.dev/agent/internal/plan"

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
