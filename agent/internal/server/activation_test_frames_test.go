package server

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"longline.dev/agent/internal/activationtest"
	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/identity"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
)

const testFrames = `{"schema":1,"vll":"6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01","end":"a","revision":3,"frame":1518,"count":100,"rate_pps":10000}`

func TestTestFramesReturnTheirCounters(t *testing.T) {
	e := &engine{result: &converge.TestResult{
		Sent: 99, AtMS: 1790000020050, VPP: vpp.Info{Version: "25.10-release"},
		Counters: statseg.TunnelCounters{Rx: 1, Tx: 1 << 53, Fragmented: 3, Reassembled: 4},
	}}
	status, answer := open(t, e).do(http.MethodPost, "/v1/test-frames", []byte(testFrames))
	want := map[string]any{
		"schema": 1., "router": "rhino", "vll": "6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01", "end": "a", "revision": 3., "sent": 99.,
		"counters":    map[string]any{"at_ms": 1790000020050., "rx_packets": 1., "tx_packets": float64(1 << 53), "fragmented": 3., "reassembled": 4.},
		"vpp_version": "25.10-release", "agent_version": "0.1.0",
	}
	if status != http.StatusOK || !reflect.DeepEqual(answer, want) {
		t.Errorf("%d\ngot  %v\nwant %v", status, answer, want)
	}
	requested := intent.TestFrames{Key: intent.Key{VLL: "6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01", End: "a"}, Revision: 3, Frame: 1518, Count: 100, Rate: 10000}
	if *e.requested != requested {
		t.Errorf("the engine received %+v", *e.requested)
	}
}

func TestEachRefusalOfTestFramesHasItsProblemType(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status int
		code   string
	}{
		"not tested":           {&converge.NotTestingError{Why: "it carries the customer's frames"}, 409, "not-testing"},
		"a frame too long":     {&converge.FrameTooLongError{Frame: 1519, Most: 1518}, 422, "invalid-test"},
		"a message is missing": {&activationtest.CannotError{Why: "no message pg_delete_interface"}, 409, "cannot-test"},
		"refused":              {&vpp.RefusedError{Message: "cli_inband", Why: "no"}, 409, "vpp-refused"},
		"no VPP":               {converge.ErrNoVPP, 503, "vpp-unavailable"},
		"another agent":        {&vpp.OtherAgentError{Folder: "/run/vpp"}, 503, "vpp-unavailable"},
		"the connection broke": {errors.New("vpp: receive: EOF"), 503, "vpp-unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			status, answer := open(t, &engine{err: c.err}).do(http.MethodPost, "/v1/test-frames", []byte(testFrames))
			if status != c.status || answer["type"] != namespace+c.code || answer["status"] != float64(c.status) {
				t.Errorf("%d %v", status, answer)
			}
			if detail, _ := answer["detail"].(string); c.code != "invalid-test" && detail != c.err.Error() {
				t.Errorf("the detail is %q", detail)
			}
		})
	}
}

func TestAnInvalidRequestForTestFramesSendsNone(t *testing.T) {
	e := &engine{}
	d := open(t, e)
	for body, pointer := range map[string]string{
		"": "", "[]": "", testFrames + "{}": "",
		strings.Replace(testFrames, `"schema":1`, `"schema":1,"interface":"host-cust1"`, 1): "/interface",
		strings.Replace(testFrames, `"frame":1518`, `"frame":1518.0`, 1):                    "/frame",
		strings.Replace(testFrames, `"rate_pps":10000`, `"rate_pps":99`, 1):                 "/rate_pps",
	} {
		status, answer := d.do(http.MethodPost, "/v1/test-frames", []byte(body))
		all, _ := answer["errors"].([]any)
		if status != http.StatusUnprocessableEntity || answer["type"] != namespace+"invalid-test" || len(all) != 1 {
			t.Errorf("%q: %d %v", body, status, answer)
			continue
		}
		if got := all[0].(map[string]any)["pointer"]; got != pointer {
			t.Errorf("%q: at %v, want %s", body, got, pointer)
		}
	}
	if status, _ := d.do(http.MethodGet, "/v1/test-frames", nil); status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", status)
	}
	if e.requested != nil {
		t.Errorf("the engine received %+v", e.requested)
	}
}

func TestOnlyThePortalCanSendTestFrames(t *testing.T) {
	e := &engine{}
	d := open(t, e)
	for name, pair := range map[string]tls.Certificate{
		"a router": d.ca.Pair("hippo", identity.Router("hippo")), "itself": d.ca.Pair("self", identity.Router("rhino")), "nobody": d.ca.Pair("nobody"),
	} {
		d.client = d.as(pair)
		if status, answer := d.do(http.MethodPost, "/v1/test-frames", []byte(testFrames)); status != http.StatusForbidden {
			t.Errorf("%s: %d %v", name, status, answer)
		}
	}
	socket := filepath.Join(t.TempDir(), "control.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	control := &http.Server{Handler: New("rhino", "0.1.0", e, nil, nil).ControlHandler()}
	go func() { _ = control.Serve(listener) }()
	defer control.Close()
	client := http.Client{Transport: &http.Transport{Dial: func(string, string) (net.Conn, error) { return net.Dial("unix", socket) }}}
	response, err := client.Post("http://control/v1/test-frames", "application/json", strings.NewReader(testFrames))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusNotFound || e.requested != nil {
		t.Errorf("on the control socket: %d, received %+v", response.StatusCode, e.requested)
	}
}
