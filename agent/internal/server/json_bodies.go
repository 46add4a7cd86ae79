package server

import (
	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/plan"
)

// The structures of docs/reference/agent-api.md. Members that may be null are pointers.

// ReasonBody says why an end is not as intended.
type ReasonBody struct {
	Code       string  `json:"code"`
	Message    string  `json:"message"`
	Object     *string `json:"object"`
	Retval     *int32  `json:"retval"`
	VPPMessage *string `json:"vpp_message"`
}

func reasonOf(r *plan.Reason) *ReasonBody {
	if r == nil {
		return nil
	}
	return &ReasonBody{r.Code, r.Message, orNull(r.Object), orNull(r.Retval), orNull(r.VPPMessage)}
}

func orNull[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

type endBody struct {
	intent.Key
	Revision int32       `json:"revision"`
	Status   string      `json:"status"`
	Policed  bool        `json:"policed"`
	Reason   *ReasonBody `json:"reason"`
}

// QuarantinedBody is an interface of the agent whose end the intent does not name.
type QuarantinedBody struct {
	intent.Key
	Interface string `json:"interface"`
}

func quarantinedOf(interfaces []*plan.EndInterface) []QuarantinedBody {
	bodies := []QuarantinedBody{}
	for _, h := range interfaces {
		bodies = append(bodies, QuarantinedBody{h.End, h.Interface.Name})
	}
	return bodies
}

type appliedBody struct {
	Schema            int               `json:"schema"`
	Router            string            `json:"router"`
	Generation        int64             `json:"generation"`
	ObservationNumber int64             `json:"look"`
	Applied           bool              `json:"applied"`
	Ends              []endBody         `json:"ends"`
	Quarantined       []QuarantinedBody `json:"quarantined"`
}

func appliedOf(router string, o *converge.Outcome) appliedBody {
	ends := []endBody{}
	for _, e := range o.Ends {
		ends = append(ends, endBody{e.Key, e.Revision, e.Status, e.Policed, reasonOf(e.Reason)})
	}
	return appliedBody{1, router, o.Generation, o.ObservationNumber, o.Applied, ends, quarantinedOf(o.Quarantined)}
}

type operationBody struct {
	N     int    `json:"n"`
	Stage string `json:"stage"`
	intent.Key
	Message string `json:"message"`
	CLI     string `json:"cli"`
	Why     string `json:"why"`
}

// PlanBody is the response to POST /v1/plan.
type PlanBody struct {
	Schema      int               `json:"schema"`
	Router      string            `json:"router"`
	Generation  int64             `json:"generation"`
	Operations  []operationBody   `json:"operations"`
	Ends        []endBody         `json:"ends"`
	Quarantined []QuarantinedBody `json:"quarantined"`
}

func planOf(in *intent.Intent, p *plan.Plan) PlanBody {
	body := PlanBody{1, in.Router, in.Generation, []operationBody{}, []endBody{}, quarantinedOf(p.Quarantined)}
	for i, op := range p.Ops {
		body.Operations = append(body.Operations, operationBody{
			i + 1, op.Stage.String(), op.End, op.Message(), op.Action.CLI(), op.Why,
		})
	}
	add := func(key intent.Key, revision int32) {
		if reason := p.Blocked[key]; reason != nil {
			body.Ends = append(body.Ends, endBody{key, revision, reason.Status, false, reasonOf(reason)})
		}
	}
	for _, e := range in.Present {
		add(e.Key, e.Revision)
	}
	for _, r := range in.Removed {
		add(r.Key, r.Revision)
	}
	return body
}
