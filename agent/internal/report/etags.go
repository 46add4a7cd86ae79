package report

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
)

// etags contains the names that the portal assigned to the lists of the last report. The portal stores these
// lists. If a list is unchanged, the next report contains only the list's name. watch is the name of the list
// of watched routes. The portal sends this list to the agent, and only if it has changed.
type etags struct {
	watch                  string
	routes, ends, circuits namedList
}

// namedList identifies a list that the portal has stored, by the SHA-256 of its content. The list's name is
// "" if the portal has assigned none.
type namedList struct {
	content [sha256.Size]byte
	etag    string
}

// observedWire is an "observed" report as it is sent: each long list is either complete or replaced by its
// name.
type observedWire struct {
	observedBody
	Routes   json.RawMessage `json:"routes"`
	Ends     json.RawMessage `json:"ends"`
	Circuits json.RawMessage `json:"circuits"`
	// WatchETag is the name of the list of watched routes that the agent has received. It is absent if the agent
	// has received none.
	WatchETag string `json:"watch_etag,omitempty"`
}

type observedAnswer struct {
	// WatchRoutes is null if the list is unchanged since WatchETag.
	WatchRoutes []string `json:"watch_routes"`
	// Maintenance is nil from portals that do not support calibration.
	Maintenance *bool `json:"maintenance"`
	// Freeze is nil if the portal does not support freezes. It is the JSON value null if the portal requests
	// no freeze.
	Freeze json.RawMessage `json:"freeze"`
	// UnderlayTable is 0 from portals that do not support underlay tables.
	UnderlayTable uint32 `json:"underlay_table"`
	ETags         struct {
		WatchRoutes string `json:"watch_routes"`
		Routes      string `json:"routes"`
		Ends        string `json:"ends"`
		Circuits    string `json:"circuits"` // "" from portals that do not support circuits
	} `json:"etags"`
}

// post sends a report. If the portal does not have a list that the report only names, or needs the list's
// content, post sends the complete report. It returns the errors of the Poster.
func (e *etags) post(ctx context.Context, to Poster, report observedBody) (*observedAnswer, error) {
	routes, routesErr := json.Marshal(report.Routes)
	ends, endsErr := json.Marshal(report.Ends)
	circuits, circuitsErr := json.Marshal(report.Circuits)
	if err := errors.Join(routesErr, endsErr, circuitsErr); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	post := func() (*observedAnswer, error) {
		wire := observedWire{
			observedBody: report, WatchETag: e.watch,
			Routes: e.routes.orWhole(routes), Ends: e.ends.orWhole(ends), Circuits: e.circuits.orWhole(circuits),
		}
		var answer observedAnswer
		if err := to.Post(ctx, "observed", wire, &answer); err != nil {
			return nil, err
		}
		given := answer.ETags
		*e = etags{given.WatchRoutes, namedAs(given.Routes, routes), namedAs(given.Ends, ends), namedAs(given.Circuits, circuits)}
		return &answer, nil
	}
	answer, err := post()
	if errors.Is(err, ErrNotStored) {
		*e = etags{}
		answer, err = post()
	}
	return answer, err
}

func namedAs(etag string, list []byte) namedList { return namedList{sha256.Sum256(list), etag} }

// orWhole returns the name of the stored list if list has the same content, otherwise list.
func (n namedList) orWhole(list []byte) json.RawMessage {
	if n.etag == "" || n.content != sha256.Sum256(list) {
		return list
	}
	name, _ := json.Marshal(map[string]string{"etag": n.etag}) // a string is always valid JSON
	return name
}
