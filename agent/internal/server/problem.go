package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
func problemOf(err error, conflicts ...conflict) *problem {
	return cmp.Or(conflictOf(err, conflicts...), unavailable(err))
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
func internalError(code, title, detail string) *problem {
	return &problem{Type: code, Title: title, Status: http.StatusInternalServerError, Detail: detail}
}

// unavailable returns the response to a request that cannot be served because VPP is not available or the
// agent is stopping. The client can repeat the request later.
func unavailable(err error) *problem {
	p := &problem{Type: "vpp-unavailable", Title: "VPP is not available", Status: http.StatusServiceUnavailable, Detail: err.Error()}
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

// MaxBody is the size of the largest accepted body (bytes).
const MaxBody = 32 << 20

// maxBodies is the largest number of bodies in memory. Further requests wait. A handler made by the
// function takes releases a body before the requested work begins, because a trace or a calibration may
// take a minute and must not delay an intent.
const maxBodies = 2

// responds returns a handler that writes the result of the function serve: the body of the response, or the reason
// why there is none.
func responds(serve func(*http.Request) (any, *problem)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if body, refusal := serve(r); refusal != nil {
			refusal.write(w)
		} else {
			writeJSON(w, body)
		}
	}
}

// takes returns a handler that reads and decodes the body, releases it, and then responds with the result of the
// function serve. If the body cannot be read or decoded, the handler responds with the reason.
func takes[T any](s *Server, decode func([]byte) (*T, *problem), serve func(*http.Request, *T) (any, *problem)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var requested *T
		s.takeBody(w, r, func(body []byte) {
			var refusal *problem
			if requested, refusal = decode(body); refusal != nil {
				refusal.write(w)
				requested = nil
			}
		})
		if requested != nil {
			responds(func(r *http.Request) (any, *problem) { return serve(r, requested) })(w, r)
		}
	}
}

// decodeStrictly decodes a body into a structure, and refuses members that the structure lacks.
func decodeStrictly(body []byte, requested any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	return decoder.Decode(requested)
}

// takeBody reads the body and calls the function use with the body. If the body cannot be read, takeBody
// responds with the reason.
func (s *Server) takeBody(w http.ResponseWriter, r *http.Request, use func([]byte)) {
	tooLarge := problem{Type: "too-large", Title: "The body is too large", Status: http.StatusRequestEntityTooLarge,
		Detail: fmt.Sprintf("at most %d bytes are read", MaxBody)}
	if r.ContentLength > MaxBody {
		w.Header().Set("Connection", "close")
		tooLarge.write(w)
		return
	}
	select {
	case s.bodySlots <- struct{}{}:
		defer func() { <-s.bodySlots }()
	case <-r.Context().Done():
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		tooLarge.write(w)
	case err != nil:
		s.log.Warn("body not read", "error", err)
		w.Header().Set("Connection", "close")
		problem{Type: "incomplete", Title: "The body was not received", Status: http.StatusRequestTimeout, Detail: err.Error()}.write(w)
	default:
		use(body)
	}
}
