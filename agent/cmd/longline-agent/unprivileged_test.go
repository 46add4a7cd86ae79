package main

import (
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"longline.dev/agent/internal/realvpp"
)

// serviceID is a user and group without an account, used for the service. vppGroup is the group that may
// use VPP's sockets: "nogroup", because VPP accepts only an existing group.
const (
	serviceID = 64_001
	vppGroup  = 65_534
)

// TestTheAgentNeedsOnlyTheGroupOfVPP runs the built program as the systemd unit does: as a separate user
// without capabilities, in one supplementary group.
func TestTheAgentNeedsOnlyTheGroupOfVPP(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root can start a program as another user")
	}
	t.Run("vppsim", func(t *testing.T) {
		a := newAgent(t)
		for _, socket := range []string{a.sim.APISocket(), a.sim.StatsSocket()} {
			allow(t, os.Chmod(filepath.Dir(socket), 0o755), os.Chown(socket, 0, vppGroup), os.Chmod(socket, 0o770))
		}
		a.asService(t)
	})
	t.Run("real VPP", func(t *testing.T) {
		real := realvpp.StartOrSkip(t, realvpp.Options{Plugins: []string{"vxlan"}, Group: vppGroup})
		a := newAgent(t)
		config, err := os.ReadFile(a.config)
		allow(t, err)
		useRealVPP := strings.NewReplacer(a.sim.APISocket(), real.APISocket(), a.sim.StatsSocket(), real.StatsSocket())
		allow(t, os.WriteFile(a.config, []byte(useRealVPP.Replace(string(config))), 0o600))
		a.asService(t)
	})
}

// asService starts the program without and with the group of VPP, and checks what it can access.
func (a *agent) asService(t *testing.T) {
	program := a.built(t)
	a.belongsTo(t, serviceID)
	a.withoutGroup(t, program)
	stop := a.service(t, program, vppGroup)
	defer stop()
	a.awaitReady()
	vpp := a.state()["vpp"].(map[string]any)
	if vpp["connected"] != true || vpp["boot_ms"] == nil {
		t.Errorf("VPP or its stats segment is out of reach: %v", vpp)
	}
	if answer := a.put("vxlan4-dot1q.json"); answer["applied"] != true {
		t.Errorf("it answered %v", answer)
	}
}

// folder returns the folder of the whole test, which contains the folders of the configuration and of the
// certificates.
func (a *agent) folder() string { return filepath.Dir(filepath.Dir(a.config)) }

// built builds the program into the test's folder and returns its path.
func (a *agent) built(t *testing.T) string {
	t.Helper()
	program := filepath.Join(a.folder(), "longline-agent")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// belongsTo gives the test's folder to a user and the group with the same number.
func (a *agent) belongsTo(t *testing.T, id int) {
	t.Helper()
	allow(t, filepath.WalkDir(a.folder(), func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(path, id, id)
	}))
}

// withoutGroup runs the same program without the supplementary group. The program starts, but cannot open
// VPP's sockets.
func (a *agent) withoutGroup(t *testing.T, program string) {
	stop := a.service(t, program)
	defer stop()
	for deadline := time.Now().Add(testTimeout); a.status("/healthz") != http.StatusOK; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not answer")
		}
	}
	if vpp := a.state()["vpp"].(map[string]any); vpp["connected"] != false {
		t.Errorf("any user of the machine may change VPP: %v", vpp)
	}
}

func (a *agent) service(t *testing.T, program string, groups ...uint32) (stop func()) {
	t.Helper()
	var output strings.Builder
	command := exec.Command(program, "-config", a.config)
	command.Stdout, command.Stderr = &output, &output
	command.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: serviceID, Gid: serviceID, Groups: groups}, Pdeathsig: syscall.SIGKILL,
	}
	allow(t, command.Start())
	return func() {
		a.client.CloseIdleConnections()
		allow(t, command.Process.Signal(syscall.SIGTERM))
		if err := command.Wait(); err != nil {
			t.Errorf("it ended with %v\n%s", err, output.String())
		}
	}
}

func allow(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}
