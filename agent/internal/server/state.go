package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/durable"
	"longline.dev/agent/internal/freeze"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/plan"
	"longline.dev/agent/internal/vppcfg"
)

type vppBody struct {
	Connected bool    `json:"connected"`
	Version   *string `json:"version"`
	BootMS    *int64  `json:"boot_ms"`
	Simulated *bool   `json:"simulated"`
}

type storedBody struct {
	Generation int64  `json:"generation"`
	SHA256     string `json:"sha256"`
}

type appliedAtBody struct {
	Generation int64 `json:"generation"`
	AtMS       int64 `json:"at_ms"`
}

type ownedBody struct {
	intent.Key
	Revision  int32  `json:"revision"`
	Kind      string `json:"kind"`
	Interface string `json:"interface"`
	SwIfIndex uint32 `json:"sw_if_index"`
	// TunnelKey is the VNI or the GRE key of a tunnel.
	TunnelKey *uint32 `json:"key"`
}

func ownedOf(h *plan.EndInterface) ownedBody {
	body := ownedBody{h.End, h.Revision, h.Kind(), h.Interface.Name, h.Interface.Index, nil}
	if h.Tunnel != nil {
		body.TunnelKey = orNull(h.Tunnel.Number())
	}
	return body
}

type conflictBody struct {
	intent.Key
	Reason *ReasonBody `json:"reason"`
}

type driftBody struct {
	intent.Key
	plan.Drift
}

// PathBody is the state of a watched path.
type PathBody struct {
	Local   string `json:"local"`
	Remote  string `json:"remote"`
	State   string `json:"state"`
	SinceMS int64  `json:"since_ms"`
	Foreign bool   `json:"foreign"`
	Detail  string `json:"detail"`
}

// StateBody is the response to GET /v1/state.
type StateBody struct {
	Schema       int                    `json:"schema"`
	Router       string                 `json:"router"`
	AgentVersion string                 `json:"agent_version"`
	VPP          vppBody                `json:"vpp"`
	Stored       *storedBody            `json:"held"`
	Applied      *appliedAtBody         `json:"applied"`
	Owned        []ownedBody            `json:"owned"`
	Conflicts    []conflictBody         `json:"conflicts"`
	Quarantined  []QuarantinedBody      `json:"quarantined"`
	Relabelled   []RelabelledBody       `json:"relabelled"`
	Drift        []driftBody            `json:"drift"`
	SetAside     []durable.SetAsideFile `json:"set_aside"`
	Paths        []PathBody             `json:"paths"`
	Freeze       *freeze.Shown          `json:"freeze"`
}

// stateOf compares VPP with the stored intent and returns the result. If VPP cannot be read, the members that
// come from VPP are empty.
func (s *Server) stateOf(ctx context.Context) StateBody {
	status := s.engine.Status()
	body := StateBody{
		Schema: 1, Router: s.router, AgentVersion: s.version, VPP: vppOf(status),
		Owned: []ownedBody{}, Conflicts: []conflictBody{}, Quarantined: []QuarantinedBody{}, Relabelled: []RelabelledBody{}, Drift: []driftBody{},
		SetAside: append([]durable.SetAsideFile{}, status.SetAside...), Paths: []PathBody{}, Freeze: status.Freeze.Shown(time.Now()),
	}
	for _, w := range status.Paths {
		body.Paths = append(body.Paths, PathBody{w.Local.String(), w.Remote.String(), string(w.State), w.Since.UnixMilli(), w.Foreign, w.Detail})
	}
	stored := status.Intent
	if stored != nil {
		body.Stored = &storedBody{stored.Generation, status.SHA256}
	} else {
		stored = &intent.Intent{Router: s.router}
	}
	if status.Applied != nil {
		body.Applied = &appliedAtBody{status.Applied.Generation, status.Applied.AtMS}
	}
	if todo, _, err := s.engine.Plan(ctx, stored); err == nil {
		body.fill(todo)
	}
	return body
}

func vppOf(status converge.Status) vppBody {
	if status.VPP == nil {
		return vppBody{}
	}
	return vppBody{true, &status.VPP.Version, orNull(status.VPP.BootMS), new(status.VPP.Simulated())}
}

func (b *StateBody) fill(todo *plan.Plan) {
	for _, h := range todo.Owned {
		b.Owned = append(b.Owned, ownedOf(h))
	}
	for key, reason := range todo.Blocked {
		if reason.Status == "conflict" {
			b.Conflicts = append(b.Conflicts, conflictBody{key, reasonOf(reason)})
		}
	}
	slices.SortFunc(b.Conflicts, func(x, y conflictBody) int { return x.Compare(y.Key) })
	for _, op := range todo.Ops {
		b.Drift = append(b.Drift, driftBody{op.End, op.Drift})
	}
	b.Quarantined, b.Relabelled = quarantinedOf(todo.Quarantined), relabelledOf(todo.Relabelled)
}

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
