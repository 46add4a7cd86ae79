package converge

import "longline.dev/agent/internal/plan"

// cleanPlan is the last complete plan of the stored intent through a session, if it had nothing to do and
// omitted no end. After it, a change of a few lines needs no plan for the others until a quick observation
// finds a foreign change.
type cleanPlan struct {
	session Session
	plan    *plan.Plan // nil if the last plan was another one
}

func (c *cleanPlan) note(session Session, todo *plan.Plan) {
	*c = cleanPlan{}
	if todo != nil && len(todo.Ops) == 0 && len(todo.Blocked) == 0 {
		*c = cleanPlan{session, todo}
	}
}
