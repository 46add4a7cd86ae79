package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"longline.dev/agent/internal/identity"
	"longline.dev/agent/internal/identity/identitytest"
	"longline.dev/agent/internal/vppsim"
)

// testTimeout limits how long a test waits for an expected event.
const testTimeout = 20 * time.Second

// processOutput is a file for the output of a process. A test may read it while the process writes.
type processOutput struct{ *os.File }

func newProcessOutput(t *testing.T) processOutput {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return processOutput{file}
}

func (o processOutput) String() string {
	text, _ := os.ReadFile(o.Name())
	return string(text)
}

// portal collects reports and requests the routes of two addresses.
type portal struct {
	*httptest.Server
	counters, observed, events chan map[string]any
	away                       atomic.Bool // answers 503 to every request
	maintenance                atomic.Bool
}

func newPortal(t *testing.T, ca *identitytest.CA) *portal {
	p := &portal{counters: make(chan map[string]any, 100), observed: make(chan map[string]any, 100), events: make(chan map[string]any, 100)}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if identity.RoleOf(r.TLS.PeerCertificates[0]) != identity.Router("rhino") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if p.away.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		body := make(map[string]any)
		switch err := json.NewDecoder(r.Body).Decode(&body); {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return // the agent was stopped while it was sending
		case err != nil:
			t.Errorf("report: %v", err)
		}
		switch r.URL.Path {
		case "/api/agent/v1/counters":
			p.counters <- body
			fmt.Fprint(w, `{"accepted": 1, "duplicate": 0, "quarantined": 0}`)
		case "/api/agent/v1/events":
			p.events <- body
			fmt.Fprint(w, `{"accepted": 1, "duplicate": 0}`)
		case "/api/agent/v1/certificate":
			fmt.Fprint(w, `{"certificate_pem": null, "ca_pem": null}`)
		case "/api/agent/v1/observed":
			p.observed <- body
			fmt.Fprintf(w, `{"watch_routes": ["10.255.0.2", "10.255.0.3"], "maintenance": %t}`, p.maintenance.Load())
		}
	}))
	p.TLS = &tls.Config{
		Certificates: []tls.Certificate{ca.Pair("portal-door", identity.Portal)}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.Pool(),
	}
	p.StartTLS()
	t.Cleanup(p.Close)
	return p
}

// agent is the complete program, connected to a vppsim.
type agent struct {
	t      *testing.T
	sim    *vppsim.Sim
	portal *portal
	config string
	url    string
	client *http.Client
}

func newAgent(t *testing.T) *agent {
	t.Helper()
	return newAgentWith(t, func(*vppsim.Config) {})
}

// newAgentWith lets the test change the configuration of the stand-in first.
func newAgentWith(t *testing.T, change func(*vppsim.Config)) *agent {
	t.Helper()
	config := vppsim.Config{
		Interfaces: []vppsim.Interface{
			{Name: "cust0"}, {Name: "loop0", Addresses: []netip.Prefix{netip.MustParsePrefix("10.255.0.1/32")}},
			{Name: "bb0", IPMTU: 9000, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/31")}},
		},
		Routes:  []vppsim.Route{{Prefix: netip.MustParsePrefix("10.255.0.2/32")}},
		Traffic: vppsim.Traffic{RateBps: 8_000_000},
	}
	change(&config)
	sim, err := vppsim.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Stop)
	ca := identitytest.New(t)
	a := &agent{t: t, sim: sim, portal: newPortal(t, ca)}
	listener, err := net.Listen("tcp", "127.0.0.1:0") // finds a free port
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	files := ca.Issue("rhino", identity.Router("rhino"))
	folder := t.TempDir()
	a.config, a.url = filepath.Join(folder, "agent.yaml"), "https://"+address
	text := fmt.Sprintf("router: rhino\nlisten: %s\nstate_dir: state\ntls: {ca: %s, certificate: %s, key: %s, revoked: revoked}\n"+
		"vpp: {api_socket: %s, stats_socket: %s}\nreport: {url: %s, interval: 1s}\n",
		address, files.CA, files.Certificate, files.Key, sim.APISocket(), sim.StatsSocket(), a.portal.URL)
	for path, content := range map[string]string{a.config: text, a.revoked(): ""} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, Certificates: []tls.Certificate{ca.Pair("portal", identity.Portal)},
	}}}
	return a
}

// revoked returns the path of the list of revoked certificates.
func (a *agent) revoked() string { return filepath.Join(filepath.Dir(a.config), "revoked") }

// start runs the program. The returned function stops it cleanly.
func (a *agent) start() (stop func()) {
	a.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	var stderr bytes.Buffer
	go func() { done <- run(ctx, []string{"-config", a.config}, &bytes.Buffer{}, &stderr) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		a.client.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			a.t.Errorf("stopped with %v\n%s", err, stderr.String())
		}
	}
	a.t.Cleanup(stop)
	return stop
}

func (a *agent) status(path string) int {
	response, err := a.client.Get(a.url + path)
	if err != nil {
		return 0
	}
	response.Body.Close()
	return response.StatusCode
}

func (a *agent) awaitReady() {
	a.t.Helper()
	for deadline := time.Now().Add(testTimeout); a.status("/readyz") != http.StatusOK; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			a.t.Fatal("never ready")
		}
	}
}

// awaitQueue waits until at least two samples are queued for the portal.
func (a *agent) awaitQueue() {
	a.t.Helper()
	for deadline := time.Now().Add(testTimeout); ; time.Sleep(50 * time.Millisecond) {
		response, err := a.client.Get(a.url + "/metrics")
		if err != nil {
			a.t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			a.t.Fatal(err)
		}
		if strings.Contains(string(text), `longline_report_queue_length{kind="counters"} 2`) {
			return
		}
		if time.Now().After(deadline) {
			a.t.Fatalf("no samples wait:\n%s", text)
		}
	}
}

func (a *agent) put(document string) map[string]any {
	return a.send(http.MethodPut, "/v1/intent", document)
}

func (a *agent) send(method, path, document string) map[string]any {
	a.t.Helper()
	data, err := os.ReadFile("../../../tests/contract/intents/valid/" + document)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.sendBody(method, path, bytes.ReplaceAll(data, []byte("host-cust1"), []byte("cust0")))
}

func (a *agent) sendBody(method, path string, data []byte) map[string]any {
	a.t.Helper()
	request, err := http.NewRequest(method, a.url+path, bytes.NewReader(data))
	if err != nil {
		a.t.Fatal(err)
	}
	response, err := a.client.Do(request)
	if err != nil {
		a.t.Fatal(err)
	}
	defer response.Body.Close()
	answer := make(map[string]any)
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		a.t.Fatal(err)
	}
	return answer
}

func firstStatus(t *testing.T, answer map[string]any) string {
	t.Helper()
	ends, _ := answer["ends"].([]any)
	if len(ends) == 0 {
		t.Fatalf("no ends in %v", answer)
	}
	return ends[0].(map[string]any)["status"].(string)
}

func (a *agent) state() map[string]any {
	a.t.Helper()
	response, err := a.client.Get(a.url + "/v1/state")
	if err != nil {
		a.t.Fatal(err)
	}
	defer response.Body.Close()
	state := make(map[string]any)
	if err := json.NewDecoder(response.Body).Decode(&state); err != nil {
		a.t.Fatal(err)
	}
	return state
}

func await(t *testing.T, reports chan map[string]any, expected string, is func(map[string]any) bool) map[string]any {
	t.Helper()
	for deadline := time.After(testTimeout); ; {
		select {
		case report := <-reports:
			if is(report) {
				return report
			}
		case <-deadline:
			t.Fatalf("never reported: %s", expected)
		}
	}
}

// countsEnds reports whether a report of counters contains ends. Ports are counted before any end exists.
func countsEnds(report map[string]any) bool {
	return len(report["samples"].([]any)[0].(map[string]any)["ends"].([]any)) > 0
}

func TestAnOrderedVLLIsCreatedReportedAndCounted(t *testing.T) {
	a := newAgent(t)
	a.start()
	a.awaitReady()
	if status := firstStatus(t, a.put("vxlan4-dot1q.json")); status != "verified" {
		t.Fatalf("the end is %s", status)
	}
	sample := await(t, a.portal.counters, "counters", countsEnds)
	if sample["simulated"] != true {
		t.Errorf("the counters of vppsim are not marked: %v", sample)
	}
	counted := sample["samples"].([]any)[0].(map[string]any)["ends"].([]any)[0].(map[string]any)
	if counted["in_bytes"].(float64) <= 0 || counted["out_packets"].(float64) <= 0 {
		t.Errorf("counted %v", counted)
	}
	report := await(t, a.portal.observed, "the watched routes", func(r map[string]any) bool {
		return len(r["routes"].([]any)) == 2 && len(r["ends"].([]any)) == 1
	})
	routes := fmt.Sprint(report["routes"])
	if routes != "[map[address:10.255.0.2 reachable:true] map[address:10.255.0.3 reachable:false]]" {
		t.Errorf("routes are %s", routes)
	}
	end := report["ends"].([]any)[0].(map[string]any)
	if end["in_sync"] != true || end["link_up"] != true || end["reachable"] != true {
		t.Errorf("the end is %v", end)
	}
	for _, i := range report["interfaces"].([]any) {
		if name := i.(map[string]any)["name"].(string); strings.HasPrefix(name, "vxlan") || strings.Contains(name, ".") {
			t.Errorf("%s, which the agent made itself, is reported", name)
		}
	}
}

func TestMetricsCoverTheAgentAndItsEnds(t *testing.T) {
	a := newAgent(t)
	a.start()
	a.awaitReady()
	a.put("vxlan4-dot1q.json")
	await(t, a.portal.counters, "counters", func(map[string]any) bool { return true })
	response, err := a.client.Get(a.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"longline_vpp_connected 1", `longline_intent_generation{state="held"} 42`, `longline_intent_generation{state="applied"} 42`,
		`longline_end_bytes_total{direction="in",end="a",vll="6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01"} `,
		`longline_end_in_sync{end="a",vll="6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01"} 1`,
		`longline_vpp_operations_total{message="create_subif",result="ok"} 1`, "longline_vpp_connections_total 1",
		`longline_report_queue_length{kind="counters"} `, `longline_converge_duration_seconds_count `,
	} {
		if !strings.Contains(string(text), line) {
			t.Errorf("%q is missing in\n%s", line, text)
		}
	}
}

func TestTheReportHasTheStructureOfTheContract(t *testing.T) {
	a := newAgentWith(t, as("26.06")) // this release can police a VLAN
	a.start()
	a.awaitReady()
	a.put("bandwidth.json")
	for kind, reports := range map[string]chan map[string]any{
		"counters": a.portal.counters, "observed": a.portal.observed, "events": a.portal.events,
	} {
		got := await(t, reports, kind, func(r map[string]any) bool {
			if kind == "counters" {
				return countsEnds(r)
			}
			ends, observed := r["ends"].([]any)
			return !observed || len(ends) > 0 && len(r["routes"].([]any)) > 0 && r["interfaces"].([]any)[0].(map[string]any)["load"] != nil
		})
		data, err := os.ReadFile("../../../tests/contract/reports/" + kind + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var want any
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		sameShape(t, kind, got, want)
	}
}

// sameShape compares names and types. Of an array it compares the first element.
func sameShape(t *testing.T, at string, got, want any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		object, _ := got.(map[string]any)
		if len(object) != len(want) {
			t.Errorf("%s has %d members, want %d: %v", at, len(object), len(want), got)
		}
		for name := range want {
			sameShape(t, at+"/"+name, object[name], want[name])
		}
	case []any:
		array, ok := got.([]any)
		if !ok {
			t.Errorf("%s is %v, want an array", at, got)
		}
		if len(array) > 0 && len(want) > 0 {
			sameShape(t, at+"/0", array[0], want[0])
		}
	case nil:
	default:
		if got != nil && fmt.Sprintf("%T", got) != fmt.Sprintf("%T", want) {
			t.Errorf("%s is a %T, want a %T", at, got, want)
		}
	}
}

func TestAPlanListsOperationsAndChangesNothing(t *testing.T) {
	a := newAgent(t)
	a.start()
	a.awaitReady()
	answer := a.send(http.MethodPost, "/v1/plan", "vxlan4-dot1q.json")
	operations := answer["operations"].([]any)
	if len(operations) != 8 {
		t.Fatalf("plans %v", answer)
	}
	first := operations[0].(map[string]any)
	if first["n"] != 1.0 || first["stage"] != "create" || first["message"] != "vxlan_add_del_tunnel_v3" ||
		first["cli"] != "create vxlan tunnel src 10.255.0.1 dst 10.255.0.2 vni 70001" || first["why"] != "the tunnel is missing" {
		t.Errorf("begins with %v", first)
	}
	if state := a.state(); state["held"] != nil || len(state["owned"].([]any)) != 0 {
		t.Errorf("left %v", state)
	}
}

func TestAfterARestartOfVPPTheAgentAppliesTheIntentAutomatically(t *testing.T) {
	a := newAgent(t)
	a.start()
	a.awaitReady()
	a.put("vxlan4-dot1q.json")
	if err := a.sim.Restart(); err != nil {
		t.Fatal(err)
	}
	a.awaitOwned(2)
}

func (a *agent) awaitOwned(n int) {
	a.t.Helper()
	for deadline := time.Now().Add(testTimeout); ; time.Sleep(50 * time.Millisecond) {
		state := a.state()
		if owned := state["owned"].([]any); len(owned) == n && len(state["drift"].([]any)) == 0 && a.status("/readyz") == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			a.t.Fatalf("never got there: %v", state)
		}
	}
}

func TestARestartedAgentKeepsItsIntentAndChangesNothing(t *testing.T) {
	a := newAgent(t)
	stop := a.start()
	a.awaitReady()
	a.put("vxlan4-dot1q.json")
	before := fmt.Sprint(a.state()["owned"])
	stop()
	a.start()
	a.awaitReady()
	if after := fmt.Sprint(a.state()["owned"]); after != before {
		t.Errorf("owns %s, before %s", after, before)
	}
	if generation := a.state()["held"].(map[string]any)["generation"]; generation != 42.0 {
		t.Errorf("contains %v", generation)
	}
}

func TestAPortalWithARevokedCertificateIsRefusedAtItsNextRequest(t *testing.T) {
	a := newAgent(t)
	a.start()
	a.awaitReady()
	own := a.client.Transport.(*http.Transport).TLSClientConfig.Certificates[0]
	sum := sha256.Sum256(own.Certificate[0])
	if err := os.WriteFile(a.revoked(), fmt.Appendf(nil, "%x # stolen\n", sum), 0o600); err != nil {
		t.Fatal(err)
	}
	if status := a.status("/readyz"); status != http.StatusForbidden {
		t.Errorf("got %d", status)
	}
}

func TestWithoutVPPTheIntentIsStoredAndAppliedLater(t *testing.T) {
	a := newAgent(t)
	a.sim.Stop()
	a.start()
	for deadline := time.Now().Add(testTimeout); a.status("/healthz") != http.StatusOK; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never up")
		}
	}
	answer := a.put("vxlan4-dot1q.json")
	if answer["applied"] != false || firstStatus(t, answer) != "pending" {
		t.Fatalf("got %v", answer)
	}
	if err := os.MkdirAll(filepath.Dir(a.sim.APISocket()), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(filepath.Dir(a.sim.APISocket())) })
	sim, err := vppsim.Start(t.Context(), vppsim.Config{
		APISocket: a.sim.APISocket(), StatsSocket: a.sim.StatsSocket(),
		Interfaces: []vppsim.Interface{{Name: "cust0"}, {Name: "loop0", Addresses: []netip.Prefix{netip.MustParsePrefix("10.255.0.1/32")}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Stop)
	a.awaitOwned(2)
}
