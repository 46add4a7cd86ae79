package server

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/freeze"
)

// longestReason is the length of the longest reason for a freeze (bytes).
const longestReason = 200

type freezeRequest struct {
	Reason  string `json:"reason"`
	Seconds int64  `json:"seconds"`
}

func (s *Server) postFreeze(w http.ResponseWriter, r *http.Request) {
	takeRequest(s, w, r, decodeFreeze, func(requested *freezeRequest) {
		begun, err := s.engine.FreezeHere(requested.Reason, time.Now().Add(time.Duration(requested.Seconds)*time.Second))
		if err != nil {
			notFrozen(err).write(w)
			return
		}
		writeJSON(w, begun.Shown(time.Now()))
	})
}

func decodeFreeze(body []byte) (*freezeRequest, *problem) {
	var requested freezeRequest
	longest := int64(freeze.Longest / time.Second)
	if err := decodeStrictly(body, &requested); err != nil || strings.TrimSpace(requested.Reason) == "" || len(requested.Reason) > longestReason ||
		requested.Seconds < 1 || requested.Seconds > longest {
		return nil, &problem{Type: "invalid-freeze", Title: "The request is not valid", Status: http.StatusUnprocessableEntity,
			Detail: "the body is not {reason, seconds}: a reason of up to 200 bytes, and 1 second to 30 days"}
	}
	return &requested, nil
}

func (s *Server) postUnfreeze(w http.ResponseWriter, r *http.Request) {
	anything := func([]byte) (*struct{}, *problem) { return &struct{}{}, nil }
	takeRequest(s, w, r, anything, func(*struct{}) {
		if err := s.engine.Unfreeze(); err != nil {
			notFrozen(err).write(w)
			return
		}
		writeJSON(w, s.engine.Status().Freeze.Shown(time.Now()))
	})
}

func notFrozen(err error) problem {
	var other *freeze.OtherError
	var testing *converge.TestUnderWayError
	switch {
	case errors.As(err, &testing):
		return problem{Type: "test-under-way", Title: "A line is being tested", Status: http.StatusConflict, Detail: err.Error()}
	case errors.As(err, &other):
		return problem{Type: "frozen", Title: "This router is frozen already", Status: http.StatusConflict, Detail: err.Error()}
	case errors.Is(err, freeze.ErrNone):
		return problem{Type: "not-frozen", Title: "There is no freeze", Status: http.StatusConflict, Detail: err.Error()}
	case errors.Is(err, converge.ErrStopping):
		return unavailable(err)
	}
	return problem{Type: "storage", Title: "It could not be stored", Status: http.StatusInternalServerError, Detail: "nothing was changed: " + err.Error()}
}

// frozenProblem returns the response to a request that a freeze blocks.
func frozenProblem(err *converge.FrozenError) problem {
	return conflictOf(err, "frozen", "This router is frozen")
}
