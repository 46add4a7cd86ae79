package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/packettrace"
)

const tracedLine = "6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01"

// knows is a portal that knows each line by any name.
func knows(_ context.Context, _ string, _, response any) error {
	return json.Unmarshal([]byte(`{"vll":"`+tracedLine+`"}`), response)
}

func requestTrace(t *testing.T, e *engine, body string) (status int, answer map[string]any) {
	t.Helper()
	s := New("rhino", "0.1.0", e, nil, slog.New(slog.DiscardHandler))
	s.QueryPortal = knows
	recorder := httptest.NewRecorder()
	s.ControlHandler().ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/v1/trace", strings.NewReader(body)))
	if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	return recorder.Code, answer
}

func TestEachRefusalOfATraceHasItsProblemType(t *testing.T) {
	const requested = `{"schema":1,"of":"cheese","packets":10,"seconds":5}`
	for name, c := range map[string]struct {
		body   string
		err    error
		status int
		code   string
	}{
		"another trace":             {requested, converge.ErrTracing, 409, "tracer-in-use"},
		"another user's":            {requested, &packettrace.InUseError{Use: packettrace.HasPackets}, 409, "tracer-in-use"},
		"no input node":             {requested, &packettrace.CannotError{Why: "none"}, 409, "cannot-trace"},
		"not cleared":               {requested, &packettrace.LeftError{Why: errors.New("vpp: receive: EOF")}, 409, "trace-left"},
		"nothing of the line":       {requested, &converge.NotTestingError{Why: "nothing here"}, 409, "not-traced"},
		"no VPP":                    {requested, converge.ErrNoVPP, 503, "vpp-unavailable"},
		"too many packets":          {`{"schema":1,"of":"cheese","packets":51,"seconds":5}`, nil, 422, "invalid-trace"},
		"for too long":              {`{"schema":1,"of":"cheese","packets":10,"seconds":31}`, nil, 422, "invalid-trace"},
		"a field that is not known": {`{"schema":1,"of":"cheese","packets":10,"seconds":5,"raw":true}`, nil, 422, "invalid-trace"},
	} {
		status, answer := requestTrace(t, &engine{err: c.err}, c.body)
		if status != c.status || answer["type"] != namespace+c.code {
			t.Errorf("%s: %d %v", name, status, answer)
		}
	}
}

func TestATraceReturnsItsPackets(t *testing.T) {
	e := &engine{traced: &packettrace.Result{Examined: 9, Packets: []packettrace.Packet{
		{At: "00:00:01:000000", From: "host-cust1.100", Nodes: []packettrace.Node{{Name: "l2-input", Says: []string{"l2-input: sw_if_index 2"}}}},
	}}}
	status, answer := requestTrace(t, e, `{"schema":1,"of":"cheese","packets":1,"seconds":1}`)
	packets, _ := answer["packets"].([]any)
	if status != http.StatusOK || answer["vll"] != tracedLine || answer["looked"] != 9. || len(packets) != 1 {
		t.Errorf("%d %v", status, answer)
	}
}
