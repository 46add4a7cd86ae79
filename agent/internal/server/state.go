package server

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/durable"
	"longline.dev/agent/internal/freeze"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/plan"
	"longline.dev/agent/internal/statseg"
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

// vppcfg returns the entries that a vppcfg file needs for the agent's interfaces in the current state of VPP.
func (s *Server) vppcfg(r *http.Request) (any, *problem) {
	stored := cmp.Or(s.engine.Status().Intent, &intent.Intent{Router: s.router})
	todo, snapshot, err := s.engine.Plan(r.Context(), stored)
	if err != nil {
		return nil, unavailable(err)
	}
	return vppcfgBody{1, s.router, vppcfg.Of(snapshot, todo, stored)}, nil
}

const (
	// countFor is the time between the two readings of counters for a response.
	countFor = time.Second
	// portalWait is the longest time for which the agent waits until the portal has sent the state of a line.
	portalWait = 5 * time.Second
	// shortestID is the smallest number of characters of a line's ID with which a user can select the line.
	shortestID = 8
)

type lineInterfaceBody struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	SwIfIndex uint32 `json:"sw_if_index"`
	AdminUp   bool   `json:"admin_up"`
	LinkUp    bool   `json:"link_up"`
}

// ratesBody has the rates at the customer's side, measured over a second. in is the traffic from the
// customer.
type ratesBody struct {
	InBPS     int64 `json:"in_bps"`
	InFrames  int64 `json:"in_frames"`
	OutBPS    int64 `json:"out_bps"`
	OutFrames int64 `json:"out_frames"`
}

type lineEndBody struct {
	End         string              `json:"end"`
	Revision    int32               `json:"revision"`
	AdminUp     bool                `json:"admin_up"`
	Testing     bool                `json:"testing"`
	UNILinkDown bool                `json:"uni_link_down"` // the whole port is to be down because the far end has no link
	Port        string              `json:"port"`
	Local       *string             `json:"local"`
	Remote      *string             `json:"remote"`
	Table       uint32              `json:"table"` // FIB table of the tunnel, 0 for a local cross-connect
	Key         *uint32             `json:"key"`
	Transport   string              `json:"transport"`
	Interfaces  []lineInterfaceBody `json:"interfaces"`
	Reason      *ReasonBody         `json:"reason"`
	Drift       []driftBody         `json:"drift"`
	Path        *string             `json:"path"`  // state of the path, null if it is not watched
	Rates       *ratesBody          `json:"rates"` // null if VPP provides no counters
}

// LineBody is the response to GET /v1/line.
type LineBody struct {
	Schema int           `json:"schema"`
	Router string        `json:"router"`
	VLL    string        `json:"vll"`
	Ends   []lineEndBody `json:"ends"`
	// Portal is the portal's view of the line (POST /api/agent/v1/line). If the portal did not respond,
	// Portal is null, and PortalError has the reason.
	Portal      json.RawMessage `json:"portal"`
	PortalError string          `json:"portal_error"`
}

type portalLine struct {
	VLL string `json:"vll"`
}

// namedLine has the ID of a line, and the portal's response or the reason why there is no response.
type namedLine struct {
	vll         string
	portal      json.RawMessage
	portalError string
}

// lineNamed finds a line by its ID, by the beginning of an ID, or by its name, which only the portal knows.
// unknown is nil if the line was found.
func (s *Server) lineNamed(ctx context.Context, of string) (named namedLine, unknown *problem) {
	ids := s.storedWith(of)
	if len(ids) > 1 {
		return named, &problem{
			Type: "several-lines", Title: "Several lines", Status: http.StatusConflict, Detail: "the ids of these lines begin with it: " + strings.Join(ids, ", "),
		}
	}
	requested := of
	if len(ids) == 1 {
		requested = ids[0]
	}
	response, err := s.queryPortal(ctx, requested)
	var known portalLine
	if err != nil {
		named.portalError = err.Error()
	} else if json.Unmarshal(response, &known) == nil {
		named.portal = response
	}
	if named.vll = known.VLL; named.vll == "" {
		if len(ids) == 0 {
			detail := "the stored intent has no line whose ID begins so"
			if named.portalError != "" {
				detail += ", and the portal could not look up a line with that name: " + named.portalError
			}
			return named, &problem{Type: "no-such-line", Title: "No such line", Status: http.StatusNotFound, Detail: detail}
		}
		named.vll = ids[0]
	}
	return named, nil
}

// line returns the state of the line that ?of= names.
func (s *Server) line(r *http.Request) (any, *problem) {
	named, unknown := s.lineNamed(r.Context(), r.URL.Query().Get("of"))
	if unknown != nil {
		return nil, unknown
	}
	body := LineBody{
		Schema: 1, Router: s.router, VLL: named.vll, Ends: []lineEndBody{}, Portal: named.portal, PortalError: named.portalError,
	}
	s.fillLine(r.Context(), &body)
	return body, nil
}

// storedWith returns the IDs in the stored intent that begin with the text. It returns none if the text has
// fewer than shortestID characters.
func (s *Server) storedWith(text string) []string {
	stored := s.engine.Status().Intent
	if stored == nil || len(text) < shortestID {
		return nil
	}
	var ids []string
	for _, end := range stored.Present {
		if strings.HasPrefix(end.VLL, strings.ToLower(text)) && (len(ids) == 0 || ids[len(ids)-1] != end.VLL) {
			ids = append(ids, end.VLL) // the ends of a line follow each other
		}
	}
	return ids
}

func (s *Server) queryPortal(ctx context.Context, line string) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, portalWait)
	defer cancel()
	var response json.RawMessage
	err := s.QueryPortal(ctx, "line", map[string]any{"schema": 1, "line": line}, &response)
	return response, err
}

// fillLine adds the line's ends in the stored intent, with their state in VPP. If VPP cannot be read, the
// ends have no interfaces, no reasons, no drift and no rates.
func (s *Server) fillLine(ctx context.Context, body *LineBody) {
	status := s.engine.Status()
	if status.Intent == nil {
		return
	}
	todo, snapshot, err := s.engine.Plan(ctx, status.Intent)
	before, after := s.countTwice(ctx, status.VPP != nil && err == nil, snapshot)
	paths := make(map[intent.Path]string)
	for _, w := range status.Paths {
		paths[intent.Path{Local: w.Local, Remote: w.Remote}] = string(w.State)
	}
	for _, end := range status.Intent.Present {
		if end.VLL != body.VLL {
			continue
		}
		shown := endOfLine(&end)
		if path, tunnelled := end.Tunnel.Path(); tunnelled {
			if state, watched := paths[path]; watched {
				shown.Path = &state
			}
		}
		if err == nil {
			shown.fill(&end, todo, before, after)
		}
		body.Ends = append(body.Ends, shown)
	}
}

func endOfLine(end *intent.End) lineEndBody {
	shown := lineEndBody{
		End: end.End, Revision: end.Revision, AdminUp: end.AdminUp, Testing: end.Testing, UNILinkDown: end.UNILinkDown, Port: end.Access.Interface,
		Transport: string(end.Tunnel.Encapsulation), Table: end.Tunnel.Table, Interfaces: []lineInterfaceBody{}, Drift: []driftBody{},
	}
	if end.Tunnel.Encapsulation != intent.L2XC {
		shown.Local, shown.Remote = new(end.Tunnel.Local.String()), new(end.Tunnel.Remote.String())
	}
	shown.Key = orNull(end.Tunnel.Number())
	return shown
}

func (b *lineEndBody) fill(end *intent.End, todo *plan.Plan, before, after *statseg.Reading) {
	for _, h := range todo.Owned {
		if h.End != end.Key {
			continue
		}
		i := h.Interface
		b.Interfaces = append(b.Interfaces, lineInterfaceBody{h.Kind(), i.Name, i.Index, i.AdminUp, i.LinkUp})
		if h.Tunnel == nil && after != nil {
			b.Rates = ratesOf(i, before, after)
		}
	}
	if reason := todo.Blocked[end.Key]; reason != nil {
		b.Reason = reasonOf(reason)
	}
	for _, op := range todo.Ops {
		if op.End == end.Key {
			b.Drift = append(b.Drift, driftBody{op.End, op.Drift})
		}
	}
}

// countTwice reads the counters now and a second later. It returns nil, nil if VPP provides no counters.
func (s *Server) countTwice(ctx context.Context, connected bool, snapshot *observe.Snapshot) (before, after *statseg.Reading) {
	if !connected || s.Counters == nil {
		return nil, nil
	}
	first, err := s.Counters(snapshot.Boot.MS)
	if err != nil {
		return nil, nil
	}
	select {
	case <-ctx.Done():
		return nil, nil
	case <-time.After(countFor):
	}
	second, err := s.Counters(snapshot.Boot.MS)
	if err != nil {
		return nil, nil
	}
	return &first, &second
}

// ratesOf returns the rates of an interface between the two readings. It returns nil if the interface's index
// now belongs to another interface, or if another user cleared the counters.
func ratesOf(i *observe.Interface, before, after *statseg.Reading) *ratesBody {
	at := int(i.Index)
	for _, reading := range []*statseg.Reading{before, after} {
		if at >= len(reading.Names) || reading.Names[at] != i.Name || at >= len(reading.Rx) || at >= len(reading.Tx) {
			return nil
		}
	}
	seconds := countFor.Seconds()
	per := func(was, is uint64) int64 { return int64(float64(is-was) / seconds) }
	rx, tx := after.Rx[at], after.Tx[at]
	if rx.Packets < before.Rx[at].Packets || tx.Packets < before.Tx[at].Packets {
		return nil
	}
	return &ratesBody{
		InBPS: 8 * per(before.Rx[at].Bytes, rx.Bytes), InFrames: per(before.Rx[at].Packets, rx.Packets),
		OutBPS: 8 * per(before.Tx[at].Bytes, tx.Bytes), OutFrames: per(before.Tx[at].Packets, tx.Packets),
	}
}
