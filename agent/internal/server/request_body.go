package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// MaxBody is the size of the largest accepted body (bytes).
const MaxBody = 32 << 20

// maxBodies is the largest number of bodies in memory. Further requests wait. takeRequest releases a body
// before the requested work begins, because a trace or a calibration may take a minute and must not delay an
// intent.
const maxBodies = 2

// takeRequest reads and decodes the body, releases it, and then serves the request. If one of these steps
// fails, it responds with the reason.
func takeRequest[T any](s *Server, w http.ResponseWriter, r *http.Request, decode func([]byte) (*T, *problem), serve func(*T)) {
	var requested *T
	s.takeBody(w, r, func(body []byte) {
		var refusal *problem
		if requested, refusal = decode(body); refusal != nil {
			refusal.write(w)
			requested = nil
		}
	})
	if requested != nil {
		serve(requested)
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
