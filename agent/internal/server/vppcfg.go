package server

import (
	"cmp"
	"net/http"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/vppcfg"
)

type vppcfgBody struct {
	Schema int    `json:"schema"`
	Router string `json:"router"`
	*vppcfg.Part
}

// getVppcfg responds with the entries that a vppcfg file needs for the agent's interfaces in the current
// state of VPP.
func (s *Server) getVppcfg(w http.ResponseWriter, r *http.Request) {
	stored := cmp.Or(s.engine.Status().Intent, &intent.Intent{Router: s.router})
	todo, snapshot, err := s.engine.Plan(r.Context(), stored)
	if err != nil {
		unavailable(err).write(w)
		return
	}
	writeJSON(w, vppcfgBody{1, s.router, vppcfg.Of(snapshot, todo, stored)})
}
