package server

import (
	"encoding/json"
	"errors"
	"net/http"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/vpp"
)

// problem is the response to a refused request (RFC 9457).
type problem struct {
	Type       string         `json:"type"`
	Title      string         `json:"title"`
	Status     int            `json:"status"`
	Detail     string         `json:"detail"`
	Errors     []intent.Error `json:"errors,omitempty"`
	Stored     int64          `json:"held,omitempty"`
	Generation int64          `json:"generation,omitempty"`
}

// conflict is the response to errors that result from the present state of the router.
type conflict struct {
	means       func(error) bool
	code, title string
}

// conflictBy returns the response to errors of type E.
func conflictBy[E error](code, title string) conflict {
	return conflict{func(err error) bool { _, is := errors.AsType[E](err); return is }, code, title}
}

// conflictIf returns the response to one error.
func conflictIf(target error, code, title string) conflict {
	return conflict{func(err error) bool { return errors.Is(err, target) }, code, title}
}

var (
	frozen     = conflictBy[*converge.FrozenError]("frozen", "This router is frozen")
	vppRefused = conflictBy[*vpp.RefusedError]("vpp-refused", "VPP did not do it")
)

// problemOf returns the response to a request that could not be carried out: one of the conflicts, or the response
// to an unavailable VPP.
func problemOf(err error, conflicts ...conflict) problem {
	if refusal := conflictOf(err, conflicts...); refusal != nil {
		return *refusal
	}
	return unavailable(err)
}

// conflictOf returns the response of the first conflict that err means. It returns nil if err means none of them.
func conflictOf(err error, conflicts ...conflict) *problem {
	for _, c := range conflicts {
		if c.means(err) {
			return &problem{Type: c.code, Title: c.title, Status: http.StatusConflict, Detail: err.Error()}
		}
	}
	return nil
}

// unprocessable returns the response to a body that is not valid.
func unprocessable(code, title, detail string) *problem {
	return &problem{Type: code, Title: title, Status: http.StatusUnprocessableEntity, Detail: detail}
}

// internalError returns the response to an error of the router itself, for example of its disk.
func internalError(code, title, detail string) problem {
	return problem{Type: code, Title: title, Status: http.StatusInternalServerError, Detail: detail}
}

// unavailable returns the response to a request that cannot be served because VPP is not available or the
// agent is stopping. The client can repeat the request later.
func unavailable(err error) problem {
	p := problem{Type: "vpp-unavailable", Title: "VPP is not available", Status: http.StatusServiceUnavailable, Detail: err.Error()}
	if errors.Is(err, converge.ErrStopping) {
		p.Type, p.Title = "stopping", "The agent is stopping"
	}
	return p
}

const namespace = "urn:longline:error:"

func (p problem) write(w http.ResponseWriter) {
	p.Type = namespace + p.Type
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may have disconnected
}

func writeJSON(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // the client may have disconnected
}
