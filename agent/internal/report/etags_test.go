package report

import (
	"context"
	"encoding/json"
	"testing"

	"longline.dev/agent/internal/intent"
)

// nameGiver responds as the portal does: it recognizes lists by the names that it assigned to them.
type nameGiver struct {
	older    bool // a portal that assigns none
	requests []map[string]any
	lists    map[string]string // by part: the name of the stored list
}

func (p *nameGiver) Post(_ context.Context, _ string, report, answer any) error {
	text, err := json.Marshal(report)
	if err != nil {
		return err
	}
	var body map[string]any
	if err := json.Unmarshal(text, &body); err != nil {
		return err
	}
	p.requests = append(p.requests, body)
	names := make(map[string]string)
	for _, part := range []string{"routes", "ends", "circuits"} {
		switch sent := body[part].(type) {
		case map[string]any:
			if names[part] = sent["etag"].(string); names[part] != p.lists[part] {
				return ErrNotStored
			}
		default:
			content, _ := json.Marshal(sent)
			names[part] = part + string(content)
		}
	}
	if p.older {
		return json.Unmarshal([]byte(`{"watch_routes": ["10.255.0.2"]}`), answer)
	}
	p.lists = names
	routes := []string{"10.255.0.2"}
	if body["watch_etag"] == "w1" {
		routes = nil
	}
	text, err = json.Marshal(map[string]any{"watch_routes": routes, "etags": map[string]string{"watch_routes": "w1", "routes": names["routes"], "ends": names["ends"], "circuits": names["circuits"]}})
	if err != nil {
		return err
	}
	return json.Unmarshal(text, answer)
}

// isNamed reports whether the last report had only the name of a list.
func (p *nameGiver) isNamed(part string) bool {
	_, named := p.requests[len(p.requests)-1][part].(map[string]any)
	return named
}

func reportOf(up bool) observedBody {
	return observedBody{Routes: []routeBody{{"10.255.0.2", true}}, Ends: []endBody{{Key: intent.Key{VLL: "6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01", End: "a"}, LinkUp: up}}}
}

func mustPost(t *testing.T, e *etags, to Poster, report observedBody) *observedAnswer {
	t.Helper()
	answer, err := e.post(t.Context(), to, report)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestAnUnchangedListIsSentAsItsName(t *testing.T) {
	var stored etags
	portal := &nameGiver{}
	if answer := mustPost(t, &stored, portal, reportOf(true)); len(answer.WatchRoutes) != 1 || portal.isNamed("ends") || portal.isNamed("routes") {
		t.Errorf("the first report: %v, answered %v", portal.requests, answer)
	}
	if answer := mustPost(t, &stored, portal, reportOf(true)); answer.WatchRoutes != nil || !portal.isNamed("ends") || !portal.isNamed("routes") {
		t.Errorf("the second report: %v, answered %v", portal.requests[1], answer)
	}
	mustPost(t, &stored, portal, reportOf(false))
	if portal.isNamed("ends") || !portal.isNamed("routes") {
		t.Errorf("after a change of an end: %v", portal.requests[2])
	}
	mustPost(t, &stored, portal, reportOf(true))
	if portal.isNamed("ends") {
		t.Error("a list was sent by the name of an older one")
	}
}

func TestAListThatThePortalHasNotStoredIsSentCompletely(t *testing.T) {
	var stored etags
	portal := &nameGiver{}
	mustPost(t, &stored, portal, reportOf(true))
	portal.lists = nil // another database
	answer := mustPost(t, &stored, portal, reportOf(true))
	if len(portal.requests) != 3 || portal.isNamed("ends") || portal.isNamed("routes") || len(answer.WatchRoutes) != 1 {
		t.Errorf("received %v, answered %v", portal.requests, answer)
	}
}

func TestAPortalWithoutETagsReceivesCompleteLists(t *testing.T) {
	var stored etags
	portal := &nameGiver{older: true}
	for range 3 {
		mustPost(t, &stored, portal, reportOf(true))
		_, named := portal.requests[len(portal.requests)-1]["watch_etag"]
		if portal.isNamed("ends") || portal.isNamed("routes") || named {
			t.Errorf("it received %v", portal.requests[len(portal.requests)-1])
		}
	}
}
