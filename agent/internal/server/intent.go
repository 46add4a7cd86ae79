package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"longline.dev/agent/internal/intent"
)

// readIntent decodes the body, or answers why not and returns nil.
func (s *Server) readIntent(w http.ResponseWriter, r *http.Request) *intent.Intent {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		problem{Type: "too-large", Title: "The body is too large", Status: http.StatusRequestEntityTooLarge,
			Detail: fmt.Sprintf("at most %d bytes are read", MaxBody)}.write(w)
		return nil
	}
	if err != nil {
		s.log.Warn("body not read", "error", err)
		return nil // there is nobody to answer
	}
	in, err := intent.Decode(body, s.router)
	var malformed *intent.MalformedError
	var invalid *intent.InvalidError
	refusal := problem{Type: "invalid-intent", Title: "The intent is not valid"}
	switch {
	case errors.As(err, &malformed):
		refusal.Status, refusal.Detail = http.StatusBadRequest, "the body is not one JSON object; nothing was changed"
		refusal.Errors = []intent.Error{{Pointer: "", Code: "malformed_json", Detail: malformed.Detail}}
	case errors.As(err, &invalid):
		refusal.Status, refusal.Errors = http.StatusUnprocessableEntity, invalid.Errors
		refusal.Detail = fmt.Sprintf("%d errors; nothing was changed", len(invalid.Errors))
	default:
		return in
	}
	refusal.write(w)
	return nil
}

func (s *Server) putIntent(w http.ResponseWriter, r *http.Request) {
	in := s.readIntent(w, r)
	if in == nil {
		return
	}
	outcome, err := s.engine.Put(r.Context(), in)
	var old *intent.OldGenerationError
	var reused *intent.GenerationReusedError
	switch {
	case errors.As(err, &old):
		problem{Type: "old-generation", Title: "An older generation", Status: http.StatusConflict,
			Detail: fmt.Sprintf("generation %d is held", old.Held), Held: old.Held, Generation: old.Generation}.write(w)
	case errors.As(err, &reused):
		problem{Type: "generation-reused", Title: "A generation used twice", Status: http.StatusConflict,
			Detail: fmt.Sprintf("generation %d is held with other content", reused.Generation),
			Held:   reused.Generation, Generation: reused.Generation}.write(w)
	case err != nil:
		s.log.Error("intent not stored", "error", err)
		problem{Type: "storage", Title: "The intent could not be stored", Status: http.StatusInternalServerError,
			Detail: "nothing was changed: " + err.Error()}.write(w)
	default:
		writeJSON(w, appliedOf(s.router, outcome))
	}
}

func (s *Server) postPlan(w http.ResponseWriter, r *http.Request) {
	in := s.readIntent(w, r)
	if in == nil {
		return
	}
	todo, _, err := s.engine.Look(r.Context(), in)
	if err != nil {
		problem{Type: "vpp-unavailable", Title: "VPP is not available", Status: http.StatusServiceUnavailable, Detail: err.Error()}.write(w)
		return
	}
	writeJSON(w, planOf(in, todo))
}
