package converge

import "longline.dev/agent/internal/plan"

// clean is the last plan of all that is held, made through a session, if it left nothing to do and nobody out: then a
// change of a few lines needs no plan for the others until somebody else changes something, which a glance finds.
type clean struct {
	session Session
	plan    *plan.Plan // nil: the last plan was another
}

func (c *clean) note(session Session, todo *plan.Plan) {
	*c = clean{}
	if todo != nil && len(todo.Ops) == 0 && len(todo.Blocked) == 0 {
		*c = clean{session, todo}
	}
}
