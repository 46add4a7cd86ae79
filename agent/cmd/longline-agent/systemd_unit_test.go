package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const unit = "../../../deploy/systemd/longline-agent.service"

// TestSystemdAcceptsTheUnitAndRatesItAsHardened: systemd only warns about settings that it does not know,
// and ignores them.
func TestSystemdAcceptsTheUnitAndRatesItAsHardened(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	text, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), filepath.Base(unit))
	if err := os.WriteFile(copied, []byte(strings.ReplaceAll(string(text), "/usr/bin/longline-agent", "/bin/true")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", copied).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("verify: %v\n%s", err, out)
	}
	// The scale goes from 0 (no exposure) to 100. The remaining exposure is network access and the agent's
	// own state.
	if out, err := exec.Command(analyze, "security", "--offline=yes", "--threshold=20", "--no-pager", copied).CombinedOutput(); err != nil {
		t.Errorf("security: %v\n%s", err, out)
	}
}
