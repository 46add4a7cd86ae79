package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// wroteToVPP returns the metrics that count messages that change VPP.
func (a *agent) wroteToVPP() (lines []string) {
	for line := range strings.Lines(a.figures()) {
		if strings.HasPrefix(line, "longline_vpp_operations_total{") {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestAnAgentWithUnreadableFilesReportsThemAndChangesNothingUntilItReceivesAnIntent(t *testing.T) {
	whole, err := os.ReadFile("../../../tests/contract/intents/valid/vxlan4-dot1q.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]map[string][]byte{
		"of a newer agent": {"intent.json": bytes.Replace(whole, []byte(`"frame":`), []byte(`"invented_later": 1, "frame":`), 1)},
		"empty":            {"intent.json": nil, "counters/position.json": nil, "events/position.json": nil},
		"only a position":  {"events/position.json": nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t)
			stop := a.start()
			a.awaitReady()
			if status := firstStatus(t, a.put("vxlan4-dot1q.json")); status != "verified" {
				t.Fatalf("the end is %s", status)
			}
			stop()
			state := filepath.Join(filepath.Dir(a.config), "state")
			for file, content := range spoil {
				if err := os.WriteFile(filepath.Join(state, file), content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, withoutIntent := spoil["intent.json"]
			a.start()
			a.awaitFigure("longline_vpp_connected 1")
			report := await(t, a.portal.observed, "what is set aside", func(r map[string]any) bool {
				aside, _ := r["set_aside"].([]any)
				return len(aside) == len(spoil) && r["vpp"].(map[string]any)["connected"] == true
			})
			if generation := report["generation"].(map[string]any)["held"]; (generation == nil) != withoutIntent {
				t.Errorf("reported as stored: %v", generation)
			}
			if aside := a.state()["set_aside"].([]any); len(aside) != len(spoil) {
				t.Errorf("the state has %v", aside)
			}
			for file, content := range spoil {
				if kept, err := os.ReadFile(filepath.Join(state, file+".set-aside")); err != nil || !bytes.Equal(kept, content) {
					t.Errorf("%s is not kept: %v", file, err)
				}
			}
			if ready := a.status("/readyz") == 200; ready == withoutIntent {
				t.Errorf("ready: %v", ready)
			}
			if wrote := a.wroteToVPP(); len(wrote) != 0 {
				t.Errorf("it changed VPP: %v", wrote)
			}
			if owned := a.state()["owned"].([]any); len(owned) != 2 {
				t.Errorf("the line is no longer there: %v", owned)
			}
			if status := firstStatus(t, a.put("vxlan4-dot1q.json")); status != "verified" {
				t.Errorf("the intent that the portal sent: %s", status)
			}
			a.awaitReady()
			if wrote := a.wroteToVPP(); len(wrote) != 0 {
				t.Errorf("the line was there, and it changed VPP: %v", wrote)
			}
			for file := range spoil {
				if err := os.Remove(filepath.Join(state, file+".set-aside")); err != nil {
					t.Error(err)
				}
			}
			a.awaitFigure("longline_set_aside_files 0")
		})
	}
}
