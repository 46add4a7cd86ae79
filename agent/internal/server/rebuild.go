package server

import (
	"errors"
	"net/http"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/report"
)

type rebuildBody struct {
	Schema int    `json:"schema"`
	Router string `json:"router"`
	VLL    string `json:"vll"`
	End    string `json:"end"`
}

// postRebuild requests that the sub-interface of an end is deleted and created again. The response confirms
// the request. An event in the reports to the portal shows when the rebuild is done.
func (s *Server) postRebuild(w http.ResponseWriter, r *http.Request) {
	takeRequest(s, w, r, decodeDecision, func(requested *claimOrReleaseBody) {
		end := intent.Key{VLL: requested.VLL, End: requested.End}
		err := s.engine.RebuildVLAN(end)
		switch {
		case errors.Is(err, report.ErrNoSuchVLAN):
			conflictOf(err, "nothing-to-rebuild", "Nothing to rebuild").write(w)
		case errors.Is(err, converge.ErrNotRepaired):
			conflictOf(err, "frozen", "The router is frozen").write(w)
		case err != nil:
			s.log.Error("not rebuilt", "end", end.String(), "error", err)
			problem{Type: "not-done", Title: "It was not done", Status: http.StatusInternalServerError, Detail: err.Error()}.write(w)
		default:
			writeJSON(w, rebuildBody{1, s.router, end.VLL, end.End})
		}
	})
}
