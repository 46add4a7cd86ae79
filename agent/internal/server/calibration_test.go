package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"log/slog"

	"longline.dev/agent/internal/calibration"
	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/vpp"
)

// requestOnControl sends a request to the control socket as a command on this machine does.
func requestOnControl(t *testing.T, e *engine, body string) (int, map[string]any) {
	t.Helper()
	recorder := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodPost, "/v1/calibration", strings.NewReader(body))
	New("rhino", "0.1.0", e, nil, slog.New(slog.DiscardHandler)).ControlHandler().ServeHTTP(recorder, request)
	var answer map[string]any
	if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%s: %v", recorder.Body, err)
	}
	return recorder.Code, answer
}

func TestACalibrationReturnsItsMeasurements(t *testing.T) {
	e := &engine{calibrated: &converge.Calibrated{
		AtMS: 1790000020050, VPP: vpp.Info{Version: "25.10-release"},
		Result: &calibration.Result{
			Options: calibration.Options{Rounds: 41, Frames: 16384}, ClockRate: 2595768139.32, CPU: "AMD EPYC",
			Figures: []calibration.Figure{{Transport: calibration.L2XC, Clocks: 24.12, Least: 24, Most: 31.5, Nodes: []calibration.Node{{Name: "l2-input", Clocks: 12.6}}}},
			Missing: map[calibration.Transport]string{"gre6": "gre_tunnel_add_del"},
		},
	}}
	status, answer := requestOnControl(t, e, `{"schema": 1, "beside_lines": true}`)
	want := map[string]any{
		"schema": 1., "router": "rhino", "measured_ms": 1790000020050., "vpp_version": "25.10-release", "agent_version": "0.1.0",
		"cpu": "AMD EPYC", "clock_hz": 2595768139., "rounds": 41., "frames": 16384.,
		"figures": []any{map[string]any{"transport": "l2xc", "clocks": 24.12, "least": 24., "most": 31.5,
			"nodes": []any{map[string]any{"node": "l2-input", "clocks": 12.6}}}},
		"missing": []any{map[string]any{"transport": "gre6", "message": "gre_tunnel_add_del"}},
	}
	if status != http.StatusOK || !reflect.DeepEqual(answer, want) || !e.withLines {
		t.Errorf("%d\ngot  %v\nwant %v", status, answer, want)
	}
}

func TestEachRefusalOfACalibrationHasItsProblemType(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status int
		code   string
	}{
		"in service":           {&converge.InServiceError{Why: "it serves"}, 409, "in-service"},
		"not measurable":       {&calibration.CannotError{Why: "a stand-in"}, 409, "cannot-calibrate"},
		"disturbed":            {&calibration.DisturbedError{Node: "l2-input", Frames: 1, Other: 2}, 409, "disturbed"},
		"refused":              {&vpp.RefusedError{Message: "pg_create_interface_v3", Why: "no"}, 409, "vpp-refused"},
		"no VPP":               {converge.ErrNoVPP, 503, "vpp-unavailable"},
		"the connection broke": {errors.New("vpp: receive: EOF"), 503, "vpp-unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			status, answer := requestOnControl(t, &engine{err: c.err}, `{"schema": 1, "beside_lines": false}`)
			if status != c.status || answer["type"] != namespace+c.code || answer["detail"] != c.err.Error() {
				t.Errorf("%d %v", status, answer)
			}
		})
	}
}

func TestAnInvalidCalibrationRequestStartsNone(t *testing.T) {
	for _, body := range []string{"", "[]", `{"schema": 2}`, `{"schema": 1, "router": "rhino"}`, `{"schema": 1, "beside_lines": 1}`} {
		e := &engine{}
		if status, answer := requestOnControl(t, e, body); status != http.StatusUnprocessableEntity || answer["type"] != namespace+"invalid-calibration" || e.calibrations != 0 {
			t.Errorf("%s: %d %v", body, status, answer)
		}
	}
}

func TestThePortalCannotStartACalibration(t *testing.T) {
	e := &engine{}
	if status, _ := open(t, e).do(http.MethodPost, "/v1/calibration", []byte(`{"schema": 1, "beside_lines": false}`)); status != http.StatusNotFound || e.calibrations != 0 {
		t.Errorf("answered %d", status)
	}
}
