package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"longline.dev/agent/internal/converge"
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
	VLL       string `json:"vll"`
	End       string `json:"end"`
	Revision  int32  `json:"revision"`
	Kind      string `json:"kind"`
	Interface string `json:"interface"`
	SwIfIndex uint32 `json:"sw_if_index"`
	// Key is the VNI or the GRE key of a tunnel.
	Key *uint32 `json:"key"`
}

func ownedOf(h *plan.EndInterface) ownedBody {
	body := ownedBody{h.End.VLL, h.End.End, h.Revision, h.Kind(), h.Interface.Name, h.Interface.Index, nil}
	if h.Tunnel != nil {
		body.Key = orNull(h.Tunnel.Number())
	}
	return body
}

type conflictBody struct {
	VLL    string      `json:"vll"`
	End    string      `json:"end"`
	Reason *reasonBody `json:"reason"`
}

type driftBody struct {
	VLL     string `json:"vll"`
	End     string `json:"end"`
	Object  string `json:"object"`
	Field   string `json:"field"`
	Desired string `json:"desired"`
	Actual  string `json:"actual"`
}

type setAsideBody struct {
	File string `json:"file"`
	Why  string `json:"why"`
}

type pathBody struct {
	Local   string `json:"local"`
	Remote  string `json:"remote"`
	State   string `json:"state"`
	SinceMS int64  `json:"since_ms"`
	Foreign bool   `json:"foreign"`
	Detail  string `json:"detail"`
}

type stateBody struct {
	Schema       int               `json:"schema"`
	Router       string            `json:"router"`
	AgentVersion string            `json:"agent_version"`
	VPP          vppBody           `json:"vpp"`
	Stored       *storedBody       `json:"held"`
	Applied      *appliedAtBody    `json:"applied"`
	Owned        []ownedBody       `json:"owned"`
	Conflicts    []conflictBody    `json:"conflicts"`
	Quarantined  []quarantinedBody `json:"quarantined"`
	Relabelled   []relabelledBody  `json:"relabelled"`
	Drift        []driftBody       `json:"drift"`
	SetAside     []setAsideBody    `json:"set_aside"`
	Paths        []pathBody        `json:"paths"`
	Freeze       *freeze.Shown     `json:"freeze"`
}

// stateOf compares VPP with the stored intent and returns the result. If VPP cannot be read, the members that
// come from VPP are empty.
func (s *Server) stateOf(ctx context.Context) stateBody {
	status := s.engine.Status()
	body := stateBody{
		Schema: 1, Router: s.router, AgentVersion: s.version, VPP: vppOf(status),
		Owned: []ownedBody{}, Conflicts: []conflictBody{}, Quarantined: []quarantinedBody{}, Relabelled: []relabelledBody{}, Drift: []driftBody{},
		SetAside: []setAsideBody{}, Paths: []pathBody{}, Freeze: status.Freeze.Shown(time.Now()),
	}
	for _, w := range status.Paths {
		body.Paths = append(body.Paths, pathBody{w.Local.String(), w.Remote.String(), string(w.State), w.Since.UnixMilli(), w.Foreign, w.Detail})
	}
	for _, aside := range status.SetAside {
		body.SetAside = append(body.SetAside, setAsideBody{aside.Path, aside.Why})
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
	simulated := status.VPP.Simulated()
	return vppBody{true, &status.VPP.Version, orNull(status.VPP.BootMS), &simulated}
}

func (b *stateBody) fill(todo *plan.Plan) {
	for _, h := range todo.Owned {
		b.Owned = append(b.Owned, ownedOf(h))
	}
	for key, reason := range todo.Blocked {
		if reason.Status == "conflict" {
			b.Conflicts = append(b.Conflicts, conflictBody{key.VLL, key.End, reasonOf(reason)})
		}
	}
	slices.SortFunc(b.Conflicts, func(x, y conflictBody) int {
		return intent.Key{VLL: x.VLL, End: x.End}.Compare(intent.Key{VLL: y.VLL, End: y.End})
	})
	for _, op := range todo.Ops {
		b.Drift = append(b.Drift, driftBody{op.End.VLL, op.End.End, op.Drift.Object, op.Drift.Field, op.Drift.Desired, op.Drift.Actual})
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
