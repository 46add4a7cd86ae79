package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/plan"
	"longline.dev/agent/internal/statseg"
)

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

// getLine returns the state of the line that ?of= names.
func (s *Server) getLine(w http.ResponseWriter, r *http.Request) {
	named, unknown := s.lineNamed(r.Context(), r.URL.Query().Get("of"))
	if unknown != nil {
		unknown.write(w)
		return
	}
	body := LineBody{
		Schema: 1, Router: s.router, VLL: named.vll, Ends: []lineEndBody{}, Portal: named.portal, PortalError: named.portalError,
	}
	s.fillLine(r.Context(), &body)
	writeJSON(w, body)
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
