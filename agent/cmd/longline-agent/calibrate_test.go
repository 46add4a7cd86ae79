package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"longline.dev/agent/internal/server"
)

func TestACalibrationInServiceIsRefusedAndChangesNothing(t *testing.T) {
	a := newAgent(t)
	a.start()
	a.awaitReady()
	before := a.sim.Interfaces()
	_, err := invoke(t, "calibrate", "-config", a.config)
	if err == nil || !strings.Contains(err.Error(), "nothing was done") || !strings.Contains(err.Error(), "under maintenance") {
		t.Errorf("got %v", err)
	}
	if after := a.sim.Interfaces(); len(after) != len(before) {
		t.Errorf("interfaces %v, then %v", before, after)
	}
}

func TestThePortalSetsMaintenanceForACalibration(t *testing.T) {
	a := newAgent(t)
	a.portal.maintenance.Store(true)
	a.start()
	a.awaitReady()
	// The agent refuses a stand-in after all other checks have passed.
	for deadline := time.Now().Add(testTimeout); ; time.Sleep(50 * time.Millisecond) {
		_, err := invoke(t, "calibrate", "-config", a.config)
		if err == nil || time.Now().After(deadline) {
			t.Fatalf("got %v", err)
		}
		if strings.Contains(err.Error(), "it forwards no frames") {
			break
		}
	}
	a.put("vxlan4-dot1q.json")
	if _, err := invoke(t, "calibrate", "-config", a.config); err == nil || !strings.Contains(err.Error(), "lines carry frames here, at 1 of their ends") {
		t.Errorf("with a line: %v", err)
	}
	for _, option := range []string{"-with-lines", "-beside-lines"} {
		if _, err := invoke(t, "calibrate", option, "-config", a.config); err == nil || !strings.Contains(err.Error(), "it forwards no frames") {
			t.Errorf("with a line, %s: %v", option, err)
		}
	}
}

func TestACalibrationIsPrintedAsATable(t *testing.T) {
	answer := &server.CalibrationBody{}
	text := `{"schema": 1, "router": "rhino", "measured_ms": 1790000020050, "vpp_version": "25.10-release", "agent_version": "0.1.0",
		"cpu": "AMD EPYC", "clock_hz": 2500000000, "rounds": 41, "frames": 16384,
		"figures": [{"transport": "l2xc", "clocks": 25, "least": 24, "most": 39.5, "nodes": [{"node": "l2-input", "clocks": 12.6}]},
			{"transport": "vxlan4", "clocks": 75, "least": 70, "most": 170.8, "nodes": []}],
		"missing": [{"transport": "gre6", "message": "gre_tunnel_add_del"}]}`
	if err := json.Unmarshal([]byte(text), answer); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	printCalibration(&out, answer)
	wants(t, out.String(), "rhino, VPP 25.10-release, measured 2026-09-21T", "AMD EPYC, 2500 million clocks in a second; 41 rounds of 16384 frames",
		"     vxlan4              75.0   70.0  170.8     3.00               20.0", "gre6 is not measured: this VPP has no message gre_tunnel_add_del")
}
