package server

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/plan"
)

// acknowledgedHeader is the name of the request header with the id of a freeze. The header shows that an
// operator has acknowledged the differences after this freeze in the portal.
const acknowledgedHeader = "Longline-Freeze-Looked"

// decode decodes a document, or returns the response for an invalid document.
func (s *Server) decode(body []byte) (*intent.Intent, *problem) {
	in, err := s.intents.Decode(body)
	refusal := unprocessable("invalid-intent", "The intent is not valid", "")
	if malformed, is := errors.AsType[*intent.MalformedError](err); is {
		refusal.Status, refusal.Detail = http.StatusBadRequest, "the body is not one JSON object; nothing was changed"
		refusal.Errors = []intent.Error{{Pointer: "", Code: "malformed_json", Detail: malformed.Detail}}
		return nil, refusal
	}
	if invalid, is := errors.AsType[*intent.InvalidError](err); is {
		refusal.Errors, refusal.Detail = invalid.Errors, fmt.Sprintf("%d errors; nothing was changed", len(invalid.Errors))
		return nil, refusal
	}
	return in, nil
}

func (s *Server) putIntent(r *http.Request, in *intent.Intent) (any, *problem) {
	ids := requestIDs(r.Header)
	// Log the request IDs before the work begins, because all changes in VPP from here on belong to these
	// requests.
	s.log.Info("intent", "generation", in.Generation, "present", len(in.Present), "removed", len(in.Removed), "request_ids", ids)
	outcome, err := s.engine.Put(r.Context(), in, r.Header.Get(acknowledgedHeader))
	refusal := conflictOf(err, frozen)
	old, isOld := errors.AsType[*intent.OldGenerationError](err)
	reused, isReused := errors.AsType[*intent.GenerationReusedError](err)
	switch {
	case refusal != nil:
		return nil, refusal
	case isOld:
		return nil, &problem{Type: "old-generation", Title: "An older generation", Status: http.StatusConflict,
			Detail: fmt.Sprintf("generation %d is stored", old.Stored), Stored: old.Stored, Generation: old.Generation}
	case isReused:
		return nil, &problem{Type: "generation-reused", Title: "A generation used twice", Status: http.StatusConflict,
			Detail: fmt.Sprintf("generation %d is stored with other content", reused.Generation),
			Stored: reused.Generation, Generation: reused.Generation}
	case errors.Is(err, converge.ErrStopping):
		return nil, unavailable(err)
	case err != nil:
		s.log.Error("intent not stored", "error", err)
		return nil, internalError("storage", "The intent could not be stored", "nothing was changed: "+err.Error())
	}
	return appliedOf(s.router, outcome), nil
}

func (s *Server) plan(r *http.Request, in *intent.Intent) (any, *problem) {
	s.log.Info("plan", "generation", in.Generation, "request_ids", requestIDs(r.Header))
	todo, _, err := s.engine.Plan(r.Context(), in)
	if err != nil {
		return nil, unavailable(err)
	}
	return planOf(in, todo), nil
}

// maxRequestIDs is the largest number of request IDs that the agent logs. It limits the length of a line in
// the log. The portal does not send more IDs.
const maxRequestIDs = 50

var requestIDForm = regexp.MustCompile(`^[A-Za-z0-9._-]{8,64}$`)

// requestIDs returns the IDs in the header X-Request-Id. They identify the HTTP requests to the portal that
// caused the orders in the document. The agent only logs them. So the agent ignores an ID of another form and
// does not refuse the request.
func requestIDs(header http.Header) []string {
	ids := []string{}
	for _, value := range header.Values("X-Request-Id") {
		for id := range strings.SplitSeq(value, ",") {
			if id = strings.TrimSpace(id); requestIDForm.MatchString(id) && len(ids) < maxRequestIDs {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

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
