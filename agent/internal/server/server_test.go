package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/freeze"
	"longline.dev/agent/internal/identity"
	"longline.dev/agent/internal/identity/identitytest"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/packettrace"
	"longline.dev/agent/internal/plan"
	"longline.dev/agent/internal/roundtrip"
)

const fixtures = "../../../tests/contract"

// engine returns the results that the test sets.
type engine struct {
	outcome *converge.Outcome
	err     error
	puts    int

	requested *intent.TestFrames // the last test frames
	result    *converge.TestResult
	timed     *intent.RoundTrip // the last round trip
	times     *roundtrip.Times

	traced       *packettrace.Result
	working      func() // called during a trace or calibration, nil for nothing
	calibrated   *converge.Calibrated
	calibrations int
	withLines    bool // the last calibration
	rebuilt      []intent.Key
}

func (e *engine) Put(context.Context, *intent.Intent, string) (*converge.Outcome, error) {
	e.puts++
	return e.outcome, e.err
}

func (e *engine) Plan(context.Context, *intent.Intent) (*plan.Plan, *observe.Snapshot, error) {
	return nil, nil, converge.ErrNoVPP
}

func (e *engine) Claim(context.Context, intent.Key, string) ([]*plan.EndInterface, error) {
	return nil, converge.ErrNoVPP
}

func (e *engine) Release(context.Context, intent.Key, string) ([]*plan.EndInterface, error) {
	return nil, converge.ErrNoVPP
}

func (e *engine) SendTestFrames(_ context.Context, requested *intent.TestFrames) (*converge.TestResult, error) {
	e.requested = requested
	return e.result, e.err
}

func (e *engine) MeasureRoundTrip(_ context.Context, requested *intent.RoundTrip) (*roundtrip.Times, error) {
	e.timed = requested
	return e.times, e.err
}

func (e *engine) during() {
	if e.working != nil {
		e.working()
	}
}

func (e *engine) Trace(context.Context, string, int, time.Duration) (*packettrace.Result, error) {
	e.during()
	return e.traced, e.err
}

func (e *engine) Calibrate(_ context.Context, withLines bool) (*converge.Calibrated, error) {
	e.during()
	e.calibrations++
	e.withLines = withLines
	return e.calibrated, e.err
}

func (e *engine) RebuildVLAN(end intent.Key) error {
	e.rebuilt = append(e.rebuilt, end)
	return e.err
}

func (e *engine) FreezeHere(string, time.Time) (*freeze.Freeze, error) { return nil, freeze.ErrNone }
func (e *engine) Unfreeze() error                                      { return freeze.ErrNone }

func (e *engine) Status() converge.Status { return converge.Status{} }
func (e *engine) Ready() error            { return converge.ErrNoVPP }

type door struct {
	t       *testing.T
	url     string
	ca      *identitytest.CA
	client  *http.Client // the portal
	revoked string       // the list of revoked certificates
}

func open(t *testing.T, e Engine) *door {
	t.Helper()
	return openFor(t, e, usualTimeouts)
}

func openFor(t *testing.T, e Engine, timeouts Timeouts) *door {
	t.Helper()
	ca := identitytest.New(t)
	paths := ca.Issue("rhino", identity.Router("rhino"))
	paths.Revoked = filepath.Join(t.TempDir(), "revoked")
	if err := os.WriteFile(paths.Revoked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := identity.Load(paths, "rhino")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	server := New("rhino", "0.1.0", e, prometheus.NewRegistry(), slog.New(slog.NewTextHandler(io.Discard, nil)))
	server.timeouts, server.Valid = timeouts, files.Valid
	go func() { served <- server.Serve(ctx, listener, files.Server()) }()
	d := &door{t: t, url: "https://" + listener.Addr().String(), ca: ca, revoked: paths.Revoked}
	d.client = d.as(ca.Pair("portal", identity.Portal))
	t.Cleanup(func() {
		d.client.CloseIdleConnections()
		cancel()
		if err := <-served; err != nil {
			t.Errorf("stopped with %v", err)
		}
	})
	return d
}

func (d *door) as(certificates ...tls.Certificate) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, Certificates: certificates, // package identity tests the other direction
	}}}
}

// do sends a request and returns the status and the decoded JSON of the response.
func (d *door) do(method, path string, body []byte) (int, map[string]any) {
	d.t.Helper()
	request, err := http.NewRequest(method, d.url+path, bytes.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	response, err := d.client.Do(request)
	if err != nil {
		d.t.Fatal(err)
	}
	defer response.Body.Close()
	answer := make(map[string]any)
	if response.Header.Get("Content-Type") != "" && response.StatusCode != 204 {
		_ = json.NewDecoder(response.Body).Decode(&answer)
	}
	return response.StatusCode, answer
}

func fixture(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(fixtures, path))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestOnlyThePortalIsServed(t *testing.T) {
	d := open(t, &engine{})
	for name, c := range map[string]struct {
		certificate tls.Certificate
		status      int
	}{
		"the portal":        {d.ca.Pair("portal", identity.Portal), http.StatusOK},
		"a router":          {d.ca.Pair("hippo", identity.Router("hippo")), http.StatusForbidden},
		"itself":            {d.ca.Pair("self", identity.Router("rhino")), http.StatusForbidden},
		"nobody":            {d.ca.Pair("nobody"), http.StatusForbidden},
		"portal and router": {d.ca.Pair("both", identity.Portal, identity.Router("hippo")), http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			response, err := d.as(c.certificate).Get(d.url + "/healthz")
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode != c.status {
				t.Errorf("got %d, want %d", response.StatusCode, c.status)
			}
		})
	}
	for name, client := range map[string]*http.Client{
		"no certificate":              d.as(),
		"a certificate of another CA": d.as(identitytest.New(t).Pair("portal", identity.Portal)),
	} {
		if response, err := client.Get(d.url + "/healthz"); err == nil {
			response.Body.Close()
			t.Errorf("%s was served", name)
		}
	}
}

func TestARevokedPortalIsRefusedOnItsOpenConnection(t *testing.T) {
	e := &engine{outcome: &converge.Outcome{Applied: true}}
	d := open(t, e)
	stolen := d.ca.Pair("portal", identity.Portal)
	d.client = d.as(stolen)
	valid := fixture(t, "intents/valid/vxlan4-dot1q.json")
	if status, answer := d.do("PUT", "/v1/intent", valid); status != http.StatusOK {
		t.Fatalf("got %d %v", status, answer)
	}
	sum := sha256.Sum256(stolen.Certificate[0])
	if err := os.WriteFile(d.revoked, []byte(hex.EncodeToString(sum[:])+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // on the open connection, and on a new one
		status, answer := d.do("PUT", "/v1/intent", valid)
		if status != http.StatusForbidden || answer["detail"] != identity.ErrRevoked.Error() {
			t.Errorf("got %d %v", status, answer)
		}
	}
	if e.puts != 1 {
		t.Errorf("%d intents were accepted", e.puts)
	}
	d.client = d.as(d.ca.Pair("portal", identity.Portal))
	if status, answer := d.do("PUT", "/v1/intent", valid); status != http.StatusOK {
		t.Errorf("the portal's new certificate got %d %v", status, answer)
	}
}

func TestTLSOlderThan13IsRefused(t *testing.T) {
	d := open(t, &engine{})
	client := d.client.Transport.(*http.Transport)
	client.TLSClientConfig.MaxVersion = tls.VersionTLS12
	if response, err := d.client.Get(d.url + "/healthz"); err == nil {
		response.Body.Close()
		t.Error("TLS 1.2 was served")
	}
}

func TestRefusalsAreProblemsAndChangeNothing(t *testing.T) {
	valid := fixture(t, "intents/valid/vxlan4-dot1q.json")
	var wrong struct{ Intent json.RawMessage }
	if err := json.Unmarshal(fixture(t, "intents/invalid/vni-0.json"), &wrong); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		method, path string
		body         []byte
		err          error
		status       int
		kind         string
	}{
		"no such path":      {"GET", "/v1/secrets", nil, nil, 404, "not-found"},
		"another method":    {"POST", "/v1/intent", valid, nil, 405, "method-not-allowed"},
		"not JSON":          {"PUT", "/v1/intent", []byte("{"), nil, 400, "invalid-intent"},
		"a broken rule":     {"PUT", "/v1/intent", wrong.Intent, nil, 422, "invalid-intent"},
		"too large":         {"PUT", "/v1/intent", bytes.Repeat([]byte(" "), MaxBody+1), nil, 413, "too-large"},
		"old generation":    {"PUT", "/v1/intent", valid, &intent.OldGenerationError{Stored: 43, Generation: 42}, 409, "old-generation"},
		"generation reused": {"PUT", "/v1/intent", valid, &intent.GenerationReusedError{Generation: 42}, 409, "generation-reused"},
		"no disk":           {"PUT", "/v1/intent", valid, errors.New("read-only"), 500, "storage"},
		"plan without VPP":  {"POST", "/v1/plan", valid, nil, 503, "vpp-unavailable"},
		"not ready":         {"GET", "/readyz", nil, nil, 503, "not-ready"},
	} {
		t.Run(name, func(t *testing.T) {
			e := &engine{err: c.err}
			status, answer := open(t, e).do(c.method, c.path, c.body)
			if status != c.status || answer["type"] != "urn:longline:error:"+c.kind || answer["status"] != float64(c.status) {
				t.Errorf("got %d %v", status, answer)
			}
			if c.err == nil && e.puts != 0 {
				t.Error("the engine received a request")
			}
		})
	}
}

func TestTheRefusalOfAnOldGenerationNamesTheStoredOne(t *testing.T) {
	d := open(t, &engine{err: &intent.OldGenerationError{Stored: 43, Generation: 42}})
	_, answer := d.do("PUT", "/v1/intent", fixture(t, "intents/valid/vxlan4-dot1q.json"))
	if answer["held"] != 43.0 || answer["generation"] != 42.0 {
		t.Errorf("got %v", answer)
	}
}

func TestEveryErrorOfADocumentIsListed(t *testing.T) {
	var document struct {
		Errors []struct{ Pointer, Code string }
		Intent json.RawMessage
	}
	if err := json.Unmarshal(fixture(t, "intents/invalid/two-errors-at-once.json"), &document); err != nil {
		t.Fatal(err)
	}
	_, answer := open(t, &engine{}).do("PUT", "/v1/intent", document.Intent)
	listed, _ := answer["errors"].([]any)
	if len(listed) != 2 || answer["detail"] != "2 errors; nothing was changed" {
		t.Fatalf("got %v", answer)
	}
	for i, e := range document.Errors {
		got := listed[i].(map[string]any)
		if got["pointer"] != e.Pointer || got["code"] != e.Code {
			t.Errorf("got %v, want %v", got, e)
		}
	}
}

// TestResponsesHaveTheStructureOfTheContract compares names and types with the contract's own documents.
func TestResponsesHaveTheStructureOfTheContract(t *testing.T) {
	const observation = 1790000019870123
	key := intent.Key{VLL: "6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01", End: "a"}
	refused := &plan.Reason{Status: "failed", Code: "vpp_refused", Message: "VPP refused create_subif: Sub-interface already exists",
		Object: "host-cust1.100", Retval: -56, VPPMessage: "create_subif"}
	away := &plan.Reason{Status: "pending", Code: "vpp_unavailable",
		Message: "VPP is not connected; the intent is stored and will be applied on reconnection"}
	gone := intent.Key{VLL: "0d9c5f0e-6f55-4f6b-8f2f-3f9a5f2f7b02", End: "a"}
	relabelled := &plan.Reason{Status: "conflict", Code: "relabelled", Object: "host-cust1.100 (sw_if_index 7)",
		Message: "interfaces of this end no longer have the agent's tag: host-cust1.100 (sw_if_index 7), which has no tag now. " +
			"Nothing is done until an operator claims or releases them on the router (longline-agent claim, longline-agent release)"}
	for path, outcome := range map[string]*converge.Outcome{
		"replies/relabelled.json":      {Generation: 42, ObservationNumber: observation, Applied: true, Ends: []converge.End{{Key: gone, Revision: 2, Status: "conflict", Reason: relabelled}}},
		"replies/vpp-refused.json":     {Generation: 42, ObservationNumber: observation, Applied: true, Ends: []converge.End{{Key: key, Revision: 3, Status: "failed", Reason: refused}}},
		"replies/vpp-unavailable.json": {Generation: 42, ObservationNumber: observation, Ends: []converge.End{{Key: key, Revision: 3, Status: "pending", Reason: away}}},
	} {
		t.Run(path, func(t *testing.T) {
			status, got := open(t, &engine{outcome: outcome}).do("PUT", "/v1/intent", fixture(t, "intents/valid/vxlan4-dot1q.json"))
			var want map[string]any
			if err := json.Unmarshal(fixture(t, path), &want); err != nil {
				t.Fatal(err)
			}
			if status != http.StatusOK || !reflect.DeepEqual(got, want) {
				t.Errorf("got %d %v\nwant %v", status, got, want)
			}
		})
	}
}

func TestStateWithoutVPPHasEveryMember(t *testing.T) {
	status, state := open(t, &engine{}).do("GET", "/v1/state", nil)
	var names []string
	for name := range state {
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{"agent_version", "applied", "conflicts", "drift", "freeze", "held", "owned", "paths", "quarantined", "relabelled", "router", "schema", "set_aside", "vpp"}
	if status != http.StatusOK || !slices.Equal(names, want) {
		t.Errorf("got %d %v", status, names)
	}
	if state["held"] != nil || state["applied"] != nil || state["vpp"].(map[string]any)["connected"] != false {
		t.Errorf("got %v", state)
	}
}
