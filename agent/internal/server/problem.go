package server

import (
	"encoding/json"
	"errors"
	"net/http"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/intent"
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

// conflictOf returns the response to a request that conflicts with the present state. err is the reason.
func conflictOf(err error, code, title string) problem {
	return problem{Type: code, Title: title, Status: http.StatusConflict, Detail: err.Error()}
}

// unavailable returns the response to a request that cannot be served because VPP is not available or the
// agent is stopping. The client can repeat the request later.
func unavailable(err error) problem {
	if errors.Is(err, converge.ErrStopping) {
		return problem{Type: "stopping", Title: "The agent is stopping", Status: http.StatusServiceUnavailable, Detail: err.Error()}
	}
	return problem{Type: "vpp-unavailable", Title: "VPP is not available", Status: http.StatusServiceUnavailable, Detail: err.Error()}
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
