package converge

import "longline.dev/agent/internal/plan"

// cleanPlan is the last plan of all that is held, made through a session, if it left nothing to do and nobody out: then
// a change of a few lines needs no plan for the others until somebody else changes something, which a quick look finds.
type cleanPlan struct {
	session Session
	plan    *plan.Plan // nil: the last plan was another
}

func (c *cleanPlan) note(session Session, todo *plan.Plan) {
	*c = cleanPlan{}
	if todo != nil && len(todo.Ops) == 0 && len(todo.Blocked) == 0 {
		*c = cleanPlan{session, todo}
	}
}
