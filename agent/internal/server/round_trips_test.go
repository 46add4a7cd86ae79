package server

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/roundtrip"
)

const roundTrip = `{"schema":1,"vll":"6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01","end":"z","revision":3}`

func TestRoundTripsAreReturnedInMicroseconds(t *testing.T) {
	e := &engine{times: &roundtrip.Times{Sent: 5, Received: 4, Min: 71300 * time.Nanosecond, Avg: 550 * time.Microsecond, Max: 2 * time.Second}}
	status, answer := open(t, e).do(http.MethodPost, "/v1/round-trips", []byte(roundTrip))
	want := map[string]any{
		"schema": 1., "router": "rhino", "vll": "6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01", "end": "z", "revision": 3.,
		"sent": 5., "received": 4., "min_us": 71., "avg_us": 550., "max_us": 2e6,
	}
	if status != http.StatusOK || !reflect.DeepEqual(answer, want) {
		t.Errorf("%d\ngot  %v\nwant %v", status, answer, want)
	}
	if requested := (intent.RoundTrip{Key: intent.Key{VLL: "6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01", End: "z"}, Revision: 3}); *e.timed != requested {
		t.Errorf("the engine received %+v", *e.timed)
	}
}

func TestEachRefusalOfRoundTripsHasItsProblemType(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status int
		code   string
	}{
		"no tunnel":            {&converge.NotTestingError{Why: "it has no tunnel"}, 409, "not-testing"},
		"no ping":              {&roundtrip.CannotError{Why: "its ping plugin is not loaded"}, 409, "cannot-test"},
		"no VPP":               {converge.ErrNoVPP, 503, "vpp-unavailable"},
		"the connection broke": {errors.New("vpp cli: EOF"), 503, "vpp-unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			status, answer := open(t, &engine{err: c.err}).do(http.MethodPost, "/v1/round-trips", []byte(roundTrip))
			if status != c.status || answer["type"] != namespace+c.code || answer["detail"] != c.err.Error() {
				t.Errorf("%d %v", status, answer)
			}
		})
	}
}

func TestAnInvalidRequestForRoundTripsMeasuresNothing(t *testing.T) {
	e := &engine{}
	d := open(t, e)
	for body, pointer := range map[string]string{
		"[]": "",
		strings.Replace(roundTrip, `"schema":1`, `"schema":1,"to":"192.0.2.1"`, 1): "/to",
		strings.Replace(roundTrip, `"revision":3`, `"revision":0`, 1):              "/revision",
	} {
		status, answer := d.do(http.MethodPost, "/v1/round-trips", []byte(body))
		all, _ := answer["errors"].([]any)
		if status != http.StatusUnprocessableEntity || answer["type"] != namespace+"invalid-test" || len(all) != 1 {
			t.Errorf("%q: %d %v", body, status, answer)
			continue
		}
		if got := all[0].(map[string]any)["pointer"]; got != pointer {
			t.Errorf("%q: at %v, want %s", body, got, pointer)
		}
	}
	if e.timed != nil {
		t.Errorf("the engine received %+v", e.timed)
	}
}
