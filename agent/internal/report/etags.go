package report

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
)

// etags are the names that the portal gave what was told last, on both sides: what is the same again goes by its name.
type etags struct {
	watch                  string
	routes, ends, circuits namedList
}

// namedList is a list as it was stored, by its content's SHA-256, and its name; "" for none.
type namedList struct {
	content [sha256.Size]byte
	etag    string
}

// observedWire is an observed report with its long lists told or named.
type observedWire struct {
	observedBody
	Routes    json.RawMessage `json:"routes"`
	Ends      json.RawMessage `json:"ends"`
	Circuits  json.RawMessage `json:"circuits"`
	WatchETag string          `json:"watch_etag,omitempty"`
}

type observedAnswer struct {
	// WatchRoutes is null where it is what WatchETag named.
	WatchRoutes []string `json:"watch_routes"`
	// Maintenance is nil from portals of before routers were calibrated.
	Maintenance *bool `json:"maintenance"`
	// Freeze is nil from portals of before routers were frozen, and JSON's null where the portal wants none.
	Freeze json.RawMessage `json:"freeze"`
	// UnderlayTable is 0 from portals of before routers had one.
	UnderlayTable uint32 `json:"underlay_table"`
	ETags         struct {
		WatchRoutes string `json:"watch_routes"`
		Routes      string `json:"routes"`
		Ends        string `json:"ends"`
		Circuits    string `json:"circuits"` // "" from portals that do not know them
	} `json:"etags"`
}

// tell posts a report. Where the portal has not stored what is only named, or has to look into it, all is told again.
// Errors are those of the Poster.
func (e *etags) tell(ctx context.Context, to Poster, report observedBody) (*observedAnswer, error) {
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

// orWhole is the list's name where the portal has given it one, or the list.
func (n namedList) orWhole(list []byte) json.RawMessage {
	if n.etag == "" || n.content != sha256.Sum256(list) {
		return list
	}
	name, _ := json.Marshal(map[string]string{"etag": n.etag}) // a text is always valid JSON
	return name
}
