package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/plan"
	"longline.dev/agent/internal/report"
)

// An operator decides through the control socket about interfaces whose tag another user has cleared or
// replaced.

type claimOrReleaseBody struct {
	VLL       string `json:"vll"`
	End       string `json:"end"`
	Interface string `json:"interface"` // "" for all
}

type relabelledBody struct {
	VLL       string `json:"vll"`
	End       string `json:"end"`
	Kind      string `json:"kind"`
	Interface string `json:"interface"`
	SwIfIndex uint32 `json:"sw_if_index"`
	Tag       string `json:"tag"`
}

func relabelledOf(interfaces []*plan.EndInterface) []relabelledBody {
	bodies := []relabelledBody{}
	for _, h := range interfaces {
		bodies = append(bodies, relabelledBody{h.End.VLL, h.End.End, h.Kind(), h.Interface.Name, h.Interface.Index, h.Interface.Tag})
	}
	return bodies
}

type decidedBody struct {
	Schema     int              `json:"schema"`
	Router     string           `json:"router"`
	Relabelled []relabelledBody `json:"relabelled"` // the interfaces as they were before the decision
}

// claimOrRelease handles a claim or a release, which the engine carries out.
func (s *Server) claimOrRelease(do func(context.Context, intent.Key, string) ([]*plan.EndInterface, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		takeRequest(s, w, r, decodeDecision, func(requested *claimOrReleaseBody) {
			end, name := intent.Key{VLL: requested.VLL, End: requested.End}, requested.Interface
			found, err := do(r.Context(), end, name)
			var notRelabelled *converge.NotRelabelledError
			var notDone *converge.NotClaimedError
			var frozen *converge.FrozenError
			switch {
			case errors.As(err, &frozen):
				frozenProblem(frozen).write(w)
			case errors.As(err, &notRelabelled):
				problem{Type: "not-relabelled", Title: "Nothing to decide", Status: http.StatusConflict, Detail: err.Error()}.write(w)
			case errors.As(err, &notDone):
				problem{Type: "vpp-refused", Title: "VPP did not do it", Status: http.StatusConflict, Detail: err.Error()}.write(w)
			case errors.Is(err, converge.ErrNoVPP), errors.Is(err, converge.ErrStopping):
				unavailable(err).write(w)
			case err != nil:
				s.log.Error("not decided", "end", end.String(), "interface", name, "error", err)
				problem{Type: "not-done", Title: "It was not done to its end", Status: http.StatusInternalServerError, Detail: err.Error()}.write(w)
			default:
				writeJSON(w, decidedBody{1, s.router, relabelledOf(found)})
			}
		})
	}
}

func decodeDecision(body []byte) (*claimOrReleaseBody, *problem) {
	invalid := func(format string, args ...any) (*claimOrReleaseBody, *problem) {
		return nil, &problem{Type: "invalid-decision", Title: "The request is not valid", Status: http.StatusUnprocessableEntity,
			Detail: fmt.Sprintf(format, args...)}
	}
	var requested claimOrReleaseBody
	if err := decodeStrictly(body, &requested); err != nil {
		return invalid("the body is not {vll, end, interface}: %v", err)
	}
	end := intent.Key{VLL: requested.VLL, End: requested.End}
	if _, ok := ownership.ParseTag(ownership.Tag{Key: end, Revision: 1}.String()); !ok {
		return invalid("vll is %q and end %q: these are an id in lower case with dashes, and a or z", end.VLL, end.End)
	}
	return &requested, nil
}

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
