package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// invoke runs the program with a command line and returns its output.
func invoke(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var stdout bytes.Buffer
	err := run(t.Context(), args, &stdout, &bytes.Buffer{})
	return stdout.String(), err
}

// document writes an intent fixture with the interfaces of these tests to a file and returns its path.
func document(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("../../../tests/contract/intents/valid/" + name)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, bytes.ReplaceAll(data, []byte("host-cust1"), []byte("cust0")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func wants(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
}

func TestThePlanCommandPrintsOperationsAndChangesNothing(t *testing.T) {
	a := newAgent(t)
	a.start()
	a.awaitReady()
	before := a.sim.Interfaces()
	out, err := invoke(t, "plan", "-config", a.config, "-intent", document(t, "vxlan4-dot1q.json"))
	if err != nil {
		t.Fatal(err)
	}
	wants(t, out, "generation 42: ", "    1  create ", "create vxlan tunnel src 10.255.0.1 dst 10.255.0.2 vni 70001",
		"the tunnel is missing (vxlan_add_del_tunnel_v3)", "quarantined: 0")
	if after := a.sim.Interfaces(); len(after) != len(before) || a.state()["held"] != nil {
		t.Errorf("the plan left %v", after)
	}
	a.put("vxlan4-dot1q.json")
	if out, err = invoke(t, "plan", "-config", a.config, "-intent", document(t, "vxlan4-dot1q.json")); err != nil {
		t.Fatal(err)
	}
	wants(t, out, "generation 42: 0 operations")
}

func TestTheStateCommandPrintsIntentAppliedGenerationAndOwnedObjects(t *testing.T) {
	a := newAgent(t)
	a.start()
	a.awaitReady()
	out, err := invoke(t, "state", "-config", a.config)
	if err != nil {
		t.Fatal(err)
	}
	wants(t, out, "router   rhino", "stored   nothing", "applied  nothing", "owned: 0")
	a.put("watch.json")
	if out, err = invoke(t, "state", "-config", a.config); err != nil {
		t.Fatal(err)
	}
	wants(t, out, "vppsim, started ", "stored   generation 42 (sha256 ", "applied  generation 42 at ", "owned: 2", "cust0.", "vxlan_tunnel",
		"conflicts: 0", "drift: 0", "quarantined: 0", "watched paths: 1\n  10.255.0.1 to 10.255.0.2  starting since ")
}

func TestTheStateShowsTheVNIOfATunnel(t *testing.T) {
	a := newAgent(t)
	a.start()
	a.awaitReady()
	a.put("vxlan4-dot1q.json")
	keys := make(map[string]any)
	for _, each := range a.state()["owned"].([]any) {
		owned := each.(map[string]any)
		keys[owned["kind"].(string)] = owned["key"]
	}
	if want := map[string]any{"subif": nil, "vxlan": 70001.0}; !reflect.DeepEqual(keys, want) {
		t.Errorf("the keys are %v, want %v", keys, want)
	}
}

func TestInJSONTheCommandsPrintTheAgentsResponse(t *testing.T) {
	a := newAgent(t)
	a.start()
	a.awaitReady()
	for _, args := range [][]string{
		{"state", "-json", "-config", a.config},
		{"plan", "--json", "--config", a.config, "--intent", document(t, "vxlan4-dot1q.json")},
	} {
		out, err := invoke(t, args...)
		var answer struct {
			Schema int
			Router string
		}
		if err != nil || json.Unmarshal([]byte(out), &answer) != nil || answer.Schema != 1 || answer.Router != "rhino" {
			t.Errorf("%v: %q, %v", args, out, err)
		}
	}
}

func TestAPlanOfAnInvalidDocumentListsItsErrors(t *testing.T) {
	a := newAgent(t)
	a.start()
	a.awaitReady()
	path := filepath.Join(t.TempDir(), "intent.json")
	if err := os.WriteFile(path, []byte(`{"schema": 1, "router": "hippo", "generation": 1, "present": [], "removed": []}`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := invoke(t, "plan", "-config", a.config, "-intent", path)
	if err == nil || !strings.Contains(err.Error(), "/router: ") || !strings.Contains(err.Error(), "(wrong_router)") {
		t.Errorf("got %v", err)
	}
}

func TestTheCommandsFailWithAMessageIfNoAgentRuns(t *testing.T) {
	a := newAgent(t)
	for _, args := range [][]string{{"state"}, {"claim", "-vll", "x", "-end", "a"}, {"release", "-vll", "x", "-end", "z"}, {"calibrate"}} {
		_, err := invoke(t, append(args, "-config", a.config)...)
		if err == nil || !strings.Contains(err.Error(), "no agent is running") {
			t.Errorf("%v: got %v", args, err)
		}
	}
}

func TestTheControlSocketIsPrivateAndAcceptsNoIntent(t *testing.T) {
	a := newAgent(t)
	a.start()
	a.awaitReady()
	socket := filepath.Join(filepath.Dir(a.config), "state", "control.sock")
	info, err := os.Stat(socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	client := &http.Client{Transport: &http.Transport{Dial: func(string, string) (net.Conn, error) { return net.Dial("unix", socket) }}}
	defer client.CloseIdleConnections()
	data, err := os.ReadFile(document(t, "vxlan4-dot1q.json"))
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequest(http.MethodPut, "http://agent/v1/intent", bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusNotFound || a.state()["held"] != nil {
		t.Errorf("an intent was taken with status %d", response.StatusCode)
	}
}

func TestASecondAgentOnTheSameStateDoesNotStart(t *testing.T) {
	a := newAgent(t)
	a.start()
	a.awaitReady()
	if _, err := invoke(t, "-config", a.config); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("got %v", err)
	}
	var output bytes.Buffer
	if err := run(t.Context(), []string{"-config", a.config}, io.Discard, &output); err == nil {
		t.Error("it started")
	}
	line := make(map[string]any)
	if err := json.Unmarshal(output.Bytes(), &line); err != nil || line["level"] != "ERROR" || !strings.Contains(line["error"].(string), "another process") {
		t.Errorf("the log has %q: %v", output.String(), err)
	}
	if _, err := invoke(t, "state", "-config", a.config); err != nil {
		t.Errorf("the first is gone: %v", err)
	}
}

func TestTheVersionListsTheSupportedReleasesOfVPP(t *testing.T) {
	if out, err := invoke(t, "-version"); err != nil || !strings.Contains(out, "23.10 to 26.06") {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestTheConfigurationIsCheckedWithoutRunning(t *testing.T) {
	a := newAgent(t)
	if out, err := invoke(t, "-check-config", "-config", a.config); err != nil || !strings.Contains(out, "is valid") {
		t.Errorf("got %q, %v", out, err)
	}
	path := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(path, []byte("rooter: rhino\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := invoke(t, "-check-config", "-config", path); err == nil || !strings.Contains(err.Error(), "rooter: unknown key") {
		t.Errorf("got %v", err)
	}
}

func TestHelpNamesEveryCommandOptionAndKey(t *testing.T) {
	for _, args := range [][]string{{"-help"}, {"--help"}, {"help"}, {"enroll", "-help"}, {"plan", "-h"}} {
		out, err := invoke(t, args...)
		if err != nil {
			t.Fatal(err)
		}
		wants(t, out, "SYNOPSIS", "plan -intent FILE", "state [-json]", "claim -vll UUID -end a|z", "release -vll UUID -end a|z", "-check-config", "report.store_limit (default 512MiB)", "EXIT STATUS")
	}
}

func TestAWrongCommandLineIsRefused(t *testing.T) {
	for _, args := range [][]string{{"apply"}, {"-nonsense"}, {"plan"}, {"state", "now"}, {"claim"}, {"release", "-vll", "x"}, {"claim", "-vll", "x", "-end", "b"}, {"plan", "-intent", "x", "y"}} {
		var usage *usageError
		if _, err := invoke(t, args...); !errors.As(err, &usage) {
			t.Errorf("%v: got %v", args, err)
		}
	}
}

func TestHealthSucceedsBeforeTheAgentIsReady(t *testing.T) {
	a := newAgent(t)
	if _, err := invoke(t, "health", "-config", a.config); err == nil {
		t.Error("without an agent it is healthy")
	}
	a.start()
	a.awaitReady()
	for _, args := range [][]string{{"health"}, {"health", "-ready"}} {
		out, err := invoke(t, append(args, "-config", a.config)...)
		if err != nil || (out != "ok\n" && out != "ready\n") {
			t.Errorf("%v: %q, %v", args, out, err)
		}
	}
}

func TestTheTraceCommandPrintsPacketsOrTheReasonForNone(t *testing.T) {
	a := newAgent(t)
	a.start()
	a.awaitReady()
	a.put("vxlan4-dot1q.json")
	if _, err := invoke(t, "trace", "6f0b2c52", "-config", a.config); err == nil || !strings.Contains(err.Error(), "Nothing can be traced here") {
		t.Errorf("on a VPP without a tracer: %v", err)
	}
	if _, err := invoke(t, "trace", "no such name", "-config", a.config); err == nil || !strings.Contains(err.Error(), "No such line") {
		t.Errorf("an unknown line: %v", err)
	}
	for _, wrong := range [][]string{{"trace"}, {"trace", "6f0b2c52", "-packets", "51"}, {"trace", "6f0b2c52", "-seconds", "0"}} {
		var usage *usageError
		if _, err := invoke(t, append(wrong, "-config", a.config)...); !errors.As(err, &usage) {
			t.Errorf("%v: %v", wrong, err)
		}
	}
}

func TestTheLineCommandAcceptsAnIDPrefixAndWorksWithoutAPortal(t *testing.T) {
	a := newAgent(t)
	a.start()
	a.awaitReady()
	a.put("vxlan4-dot1q.json")
	out, err := invoke(t, "line", "6f0b2c52", "-config", a.config)
	if err != nil {
		t.Fatal(err)
	}
	wants(t, out, "line     6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01", "portal   ", "end a    revision 3 on cust0\n",
		"vxlan from 10.255.0.1 to 10.255.0.2, key 70001", "subif", "cust0.", "vxlan_tunnel", "admin up", "now: ", " Mbit/s in (")
	kept, err := os.ReadFile("../../../tests/contract/intents/valid/uni-link-down.json")
	if err != nil {
		t.Fatal(err)
	}
	kept = bytes.ReplaceAll(kept, []byte("host-cust1"), []byte("cust0"))
	kept = bytes.ReplaceAll(kept, []byte(`"generation": 42`), []byte(`"generation": 43`))
	a.sendBody(http.MethodPut, "/v1/intent", bytes.ReplaceAll(kept, []byte(`"vni": 70001`), []byte(`"vni": 70001, "table": 10`)))
	if out, err = invoke(t, "line", "6f0b2c52", "-config", a.config); err != nil {
		t.Fatal(err)
	}
	wants(t, out, " on cust0, to be down for the far end's link\n", "to 10.255.0.2 in table 10, key 70001")
	if _, err := invoke(t, "line", "no such name", "-config", a.config); err == nil || !strings.Contains(err.Error(), "No such line") {
		t.Errorf("an unknown line: %v", err)
	}
	var usage *usageError
	if _, err := invoke(t, "line", "-config", a.config); !errors.As(err, &usage) {
		t.Errorf("no line: %v", err)
	}
}

func TestTheCommandsFreezeAndUnfreeze(t *testing.T) {
	a := newAgent(t)
	a.start()
	a.awaitReady()
	a.put("vxlan4-dot1q.json")
	out, err := invoke(t, "freeze", "-reason", "new line cards", "-for", "2h", "-config", a.config)
	if err != nil {
		t.Fatal(err)
	}
	wants(t, out, "frozen by the router until ", ": new line cards")
	if _, err := invoke(t, "freeze", "-reason", "again", "-for", "1h", "-config", a.config); err == nil || !strings.Contains(err.Error(), "frozen already") {
		t.Errorf("frozen twice: %v", err)
	}
	if out, err = invoke(t, "state", "-config", a.config); err != nil {
		t.Fatal(err)
	}
	wants(t, out, "frozen   frozen by the router until ")
	if out, err = invoke(t, "unfreeze", "-config", a.config); err != nil {
		t.Fatal(err)
	}
	wants(t, out, "the freeze by the router (new line cards) is over")
	for _, args := range [][]string{{"freeze", "-for", "2h"}, {"freeze", "-reason", "x"}, {"freeze", "-reason", "x", "-for", "10ms"}} {
		var usage *usageError
		if _, err := invoke(t, append(args, "-config", a.config)...); !errors.As(err, &usage) {
			t.Errorf("%v: %v", args, err)
		}
	}
}
