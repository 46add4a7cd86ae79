package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"longline.dev/agent/internal/vpp"
)

const contractVLL = "6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01"

// relabel gives all interfaces that the agent owns another tag, as another user of VPP might do.
func (a *agent) relabel(tag string) {
	a.t.Helper()
	session, err := vpp.Dialer{Socket: a.sim.APISocket(), Timeout: 5 * time.Second}.Dial(context.Background())
	if err != nil {
		a.t.Fatal(err)
	}
	defer session.Close()
	owned := a.state()["owned"].([]any)
	if len(owned) == 0 {
		a.t.Fatal("nothing is owned")
	}
	for _, each := range owned {
		index := interface_types.InterfaceIndex(each.(map[string]any)["sw_if_index"].(float64))
		reply, err := session.Call(context.Background(), &interfaces.SwInterfaceTagAddDel{IsAdd: tag != "", SwIfIndex: index, Tag: tag})
		if err != nil || vpp.Retval(reply) != 0 {
			a.t.Fatalf("%v: %+v", err, reply)
		}
	}
}

func TestAnOperatorClaimsOrReleasesRelabelledInterfaces(t *testing.T) {
	for decision, c := range map[string]struct {
		output string
		stays  bool
	}{
		"claim":   {"has the tag of " + contractVLL + `:a again; it had the tag "rack 3"`, false},
		"release": {"is yours and stays unchanged; it belonged to " + contractVLL + `:a and has the tag "rack 3"`, true},
	} {
		t.Run(decision, func(t *testing.T) {
			a := newAgent(t)
			stop := a.start()
			a.awaitReady()
			before := len(a.sim.Interfaces())
			a.put("vxlan4-dot1q.json")
			made := a.sim.Interfaces()
			a.relabel("rack 3")
			removal := fmt.Appendf(nil, `{"schema": 1, "router": "rhino", "generation": 43, "present": [],
				"removed": [{"vll": %q, "end": "a", "revision": 4}]}`, contractVLL)
			if answer := a.sendBody(http.MethodPut, "/v1/intent", removal); firstStatus(t, answer) != "conflict" {
				t.Fatalf("got %v", answer)
			}
			stop()
			a.start()
			a.awaitReady()
			out, err := invoke(t, "state", "-config", a.config)
			if err != nil {
				t.Fatal(err)
			}
			wants(t, out, "owned: 0", "conflicts: 1", "relabelled: 2", `cust0.100 (sw_if_index `, `has the tag "rack 3"`)
			args := []string{decision, "-vll", contractVLL, "-end", "a", "-config", a.config}
			if out, err = invoke(t, args...); err != nil {
				t.Fatal(err)
			}
			if strings.Count(out, c.output) != 2 {
				t.Errorf("%q is not printed for two interfaces:\n%s", c.output, out)
			}
			if answer := a.sendBody(http.MethodPut, "/v1/intent", removal); firstStatus(t, answer) != "removed" {
				t.Errorf("got %v", answer)
			}
			want := before
			if c.stays {
				want = len(made)
			}
			if now := a.sim.Interfaces(); len(now) != want {
				t.Errorf("there are %v", now)
			}
			if _, err = invoke(t, args...); err == nil || !strings.Contains(err.Error(), "nothing that was made for VLL end "+contractVLL+":a exists") {
				t.Errorf("the second time: %v", err)
			}
			args[2] = "6F0B"
			if _, err = invoke(t, args...); err == nil || !strings.Contains(err.Error(), `vll is "6F0B"`) {
				t.Errorf("a wrong id: %v", err)
			}
		})
	}
}

func TestAClaimInJSONPrintsTheAgentsResponse(t *testing.T) {
	a := newAgent(t)
	a.start()
	a.awaitReady()
	a.put("vxlan4-dot1q.json")
	a.relabel("")
	out, err := invoke(t, "claim", "-json", "-vll", contractVLL, "-end", "a", "-interface", "cust0.100", "-config", a.config)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Schema     int
		Relabelled []struct{ VLL, End, Kind, Interface, Tag string }
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil || answer.Schema != 1 || len(answer.Relabelled) != 1 ||
		answer.Relabelled[0].Kind != "subif" || answer.Relabelled[0].Interface != "cust0.100" || answer.Relabelled[0].Tag != "" {
		t.Errorf("got %s, %v", out, err)
	}
}

// TestThePortalCannotClaimOrRelease: only an operator on this machine can know who owns an interface.
func TestThePortalCannotClaimOrRelease(t *testing.T) {
	a := newAgent(t)
	a.start()
	a.awaitReady()
	for _, path := range []string{"/v1/claim", "/v1/release"} {
		answer := a.sendBody(http.MethodPost, path, []byte(`{"vll": "`+contractVLL+`", "end": "a", "interface": ""}`))
		if answer["type"] != "urn:longline:error:not-found" {
			t.Errorf("%s: %v", path, answer)
		}
	}
}
