package main

import (
	"bytes"
	"net/http"
	"os"
	"testing"

	"longline.dev/agent/internal/vppsim"
)

// putTested sends an intent in which the line is being tested or not.
func (a *agent) putTested(generation string, tested string) map[string]any {
	a.t.Helper()
	data, err := os.ReadFile("../../../tests/contract/intents/valid/vxlan4-dot1q.json")
	if err != nil {
		a.t.Fatal(err)
	}
	for from, to := range map[string]string{
		"host-cust1": "cust0", `"generation": 42`: `"generation": ` + generation, `"revision": 3,`: `"revision": 3, "testing": ` + tested + `,`,
	} {
		data = bytes.ReplaceAll(data, []byte(from), []byte(to))
	}
	return a.sendBody(http.MethodPut, "/v1/intent", data)
}

const framesRequest = `{"schema":1,"vll":"6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01","end":"a","revision":3,"frame":1518,"count":100,"rate_pps":10000}`

func TestALineIsTestedThroughTheAgentsAPI(t *testing.T) {
	a := newAgent(t)
	a.start()
	a.awaitReady()
	if status := firstStatus(t, a.putTested("42", "true")); status != "testing" {
		t.Errorf("answered %s", status)
	}
	if err := a.sim.Forwarding("cust0.100"); err == nil {
		t.Error("the customer's frames pass while the line is tested")
	}
	answer := a.sendBody(http.MethodPost, "/v1/test-frames", []byte(framesRequest))
	counters, _ := answer["counters"].(map[string]any)
	if answer["sent"] != 100. || counters["tx_packets"] != 100. || answer["vpp_version"] != vppsim.DefaultVersion {
		t.Errorf("got %v", answer)
	}
	await(t, a.portal.observed, "a report that this router can test", func(r map[string]any) bool {
		for _, each := range r["interfaces"].([]any) {
			if name := each.(map[string]any)["name"].(string); name != "local0" && name != "cust0" && name != "loop0" && name != "bb0" {
				t.Errorf("reported: %s", name)
			}
		}
		return r["line_tests"] == true && len(r["ends"].([]any)) == 1 && r["ends"].([]any)[0].(map[string]any)["in_sync"] == true
	})
	if status := firstStatus(t, a.putTested("43", "false")); status != "verified" {
		t.Errorf("handed over as %s", status)
	}
	if err := a.sim.Forwarding("cust0.100"); err != nil {
		t.Errorf("after the test: %v", err)
	}
	if answer := a.sendBody(http.MethodPost, "/v1/test-frames", []byte(framesRequest)); answer["type"] != "urn:longline:error:not-testing" {
		t.Errorf("into a line in service: %v", answer)
	}
}

func TestARouterWithAnOlderVPPReportsThatItCannotTest(t *testing.T) {
	a := newAgentWith(t, func(c *vppsim.Config) {
		c.Version, c.WithoutMessages = "24.10-vppsim", []string{"pg_create_interface_v3", "pg_delete_interface"}
	})
	a.start()
	a.awaitReady()
	await(t, a.portal.observed, "a report that it cannot", func(r map[string]any) bool {
		return r["line_tests"] == false && len(r["encapsulations"].([]any)) > 0
	})
	a.putTested("42", "true")
	if answer := a.sendBody(http.MethodPost, "/v1/test-frames", []byte(framesRequest)); answer["type"] != "urn:longline:error:cannot-test" {
		t.Errorf("got %v", answer)
	}
}
