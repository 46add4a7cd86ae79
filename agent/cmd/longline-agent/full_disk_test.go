package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"longline.dev/agent/internal/durable/durabletest"
)

// onASmallDisk moves the agent's state to a small file system that the test can fill.
func (a *agent) onASmallDisk() (folder string) {
	a.t.Helper()
	folder = durabletest.SmallDisk(a.t, "512k")
	if err := os.Symlink(folder, filepath.Join(filepath.Dir(a.config), "state")); err != nil {
		a.t.Fatal(err)
	}
	return folder
}

// figures returns the agent's metrics.
func (a *agent) figures() string {
	a.t.Helper()
	response, err := a.client.Get(a.url + "/metrics")
	if err != nil {
		a.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return string(text)
}

// awaitFigure polls the agent until its metrics contain the given line.
func (a *agent) awaitFigure(line string) {
	a.t.Helper()
	ready := func() bool { return a.status("/healthz") == http.StatusOK && strings.Contains(a.figures(), line+"\n") }
	for deadline := time.Now().Add(testTimeout); !ready(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			a.t.Fatalf("never %q in\n%s", line, a.figures())
		}
	}
}

func TestWithAFullDiskLinesReturnAfterRestartsOfVPPAndTheAgent(t *testing.T) {
	a := newAgent(t)
	disk := a.onASmallDisk()
	stop := a.start()
	a.awaitReady()
	if status := firstStatus(t, a.put("vxlan4-dot1q.json")); status != "verified" {
		t.Fatalf("the end is %s", status)
	}
	durabletest.Fill(t, disk)
	if err := a.sim.Restart(); err != nil {
		t.Fatal(err)
	}
	a.awaitFigure("longline_vpp_connections_total 2")
	a.awaitReady()
	if owned := a.state()["owned"].([]any); len(owned) != 2 {
		t.Errorf("the line is not back: %v", owned)
	}
	stop()
	if err := a.sim.Restart(); err != nil {
		t.Fatal(err)
	}
	a.start()
	a.awaitReady()
	if owned := a.state()["owned"].([]any); len(owned) != 2 {
		t.Errorf("the line is not back: %v", owned)
	}
	await(t, a.portal.observed, "the line in order", func(r map[string]any) bool {
		ends := r["ends"].([]any)
		return len(ends) == 1 && ends[0].(map[string]any)["in_sync"] == true
	})
}
