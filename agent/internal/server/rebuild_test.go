package server

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/report"
)

func TestARebuildIsRequestedOrItsRefusalHasItsProblemType(t *testing.T) {
	const body = `{"vll":"` + tracedLine + `","end":"a"}`
	for name, c := range map[string]struct {
		body   string
		err    error
		status int
		code   string
	}{
		"requested":                    {body, nil, 200, ""},
		"VPP has nothing of the end":   {body, report.ErrNoSuchVLAN, 409, "nothing-to-rebuild"},
		"the router is frozen":         {body, converge.ErrNotRepaired, 409, "frozen"},
		"the disk takes no note of it": {body, errors.New("no space"), 500, "not-done"},
		"an end that no line has":      {`{"vll":"` + tracedLine + `","end":"b"}`, nil, 422, "invalid-decision"},
		"an undocumented member":       {`{"vll":"` + tracedLine + `","end":"a","now":true}`, nil, 422, "invalid-decision"},
	} {
		t.Run(name, func(t *testing.T) {
			e := &engine{err: c.err}
			recorder := httptest.NewRecorder()
			New("rhino", "0.1.0", e, nil, slog.New(slog.DiscardHandler)).ControlHandler().ServeHTTP(
				recorder, httptest.NewRequest(http.MethodPost, "/v1/rebuild", strings.NewReader(c.body)))
			var answer map[string]any
			if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil {
				t.Fatal(err)
			}
			if recorder.Code != c.status || c.code != "" && answer["type"] != namespace+c.code {
				t.Errorf("%d %v", recorder.Code, answer)
			}
			if c.status == http.StatusOK && !slices.Equal(e.rebuilt, []intent.Key{{VLL: tracedLine, End: "a"}}) {
				t.Errorf("rebuilt %v", e.rebuilt)
			}
		})
	}
}
