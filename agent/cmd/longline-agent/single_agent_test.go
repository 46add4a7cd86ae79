package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestASecondAgentWaitsUntilTheFirstIsGone: each agent has its own state folder, so no lock on a file keeps
// the second one out.
func TestASecondAgentWaitsUntilTheFirstIsGone(t *testing.T) {
	first := newAgent(t)
	stop := first.start()
	first.awaitReady()
	second := newAgent(t)
	text, err := os.ReadFile(second.config)
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{second.sim.APISocket(): first.sim.APISocket(), second.sim.StatsSocket(): first.sim.StatsSocket()} {
		text = []byte(strings.ReplaceAll(string(text), from, to))
	}
	second.config = filepath.Join(filepath.Dir(second.config), "second.yaml")
	if err := os.WriteFile(second.config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	second.start()
	for deadline := time.Now().Add(testTimeout); second.status("/healthz") != http.StatusOK; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the second agent does not answer")
		}
	}
	interfaces := len(first.sim.Interfaces())
	if answer := second.put("vxlan4-dot1q.json"); answer["applied"] != false || firstStatus(t, answer) != "pending" {
		t.Errorf("the second agent answered %v", answer)
	}
	if now := len(first.sim.Interfaces()); now != interfaces {
		t.Errorf("there are %d interfaces, before %d", now, interfaces)
	}
	stop()
	second.awaitReady()
	second.awaitOwned(2)
}
