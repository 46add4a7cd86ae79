package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const unit = "../../../deploy/systemd/longline-agent.service"

// TestTheUnitIsUnderstoodBySystemdAndHardened: systemd only warns about what it does not know, and goes on without it.
func TestTheUnitIsUnderstoodBySystemdAndHardened(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	text, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	here := filepath.Join(t.TempDir(), filepath.Base(unit))
	if err := os.WriteFile(here, []byte(strings.ReplaceAll(string(text), "/usr/bin/longline-agent", "/bin/true")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", here).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("verify: %v\n%s", err, out)
	}
	// 0 is no exposure, 100 the most; what is left is the network and its own state.
	if out, err := exec.Command(analyze, "security", "--offline=yes", "--threshold=20", "--no-pager", here).CombinedOutput(); err != nil {
		t.Errorf("security: %v\n%s", err, out)
	}
}
