package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// setting returns the value of a key in the agent's unit, or "" if the unit does not set it.
func setting(t *testing.T, key string) string {
	t.Helper()
	text, err := os.ReadFile(unit)
	allow(t, err)
	if found := regexp.MustCompile(`(?m)^` + key + `=(.+)$`).FindSubmatch(text); found != nil {
		return string(found[1])
	}
	return ""
}

// TestTheAgentStaysWithinTheUnitsTasksOnAMachineWith256Threads simulates the machine with GOMAXPROCS, which
// Go otherwise sets to the number of hardware threads. A limit on the processes of the user replaces the
// unit's TasksMax.
func TestTheAgentStaysWithinTheUnitsTasksOnAMachineWith256Threads(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root can start a program as another user")
	}
	const machine = 256
	most, err := strconv.Atoi(setting(t, "TasksMax"))
	allow(t, err)
	threads := fmt.Sprintf("GOMAXPROCS=%d", machine)
	if set := setting(t, "Environment"); strings.HasPrefix(set, "GOMAXPROCS=") {
		threads = set
	}
	a := newAgent(t)
	for _, socket := range []string{a.sim.APISocket(), a.sim.StatsSocket()} {
		allow(t, os.Chmod(filepath.Dir(socket), 0o755), os.Chown(socket, 0, vppGroup), os.Chmod(socket, 0o770))
	}
	program := a.built(t)
	var output bytes.Buffer
	limited := fmt.Sprintf("ulimit -u %d && exec %s -config %s", most, program, a.config)
	command := exec.Command("bash", "-c", limited)
	command.Env, command.Stderr = append(os.Environ(), threads), &output
	command.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: serviceID + 1, Gid: serviceID + 1, Groups: []uint32{vppGroup}}, Pdeathsig: syscall.SIGKILL,
	}
	a.belongsTo(t, serviceID+1)
	allow(t, command.Start())
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	for a.status("/readyz") != http.StatusOK {
		select {
		case err := <-ended:
			t.Fatalf("%s, %d tasks: it ended with %v\n%.600s", threads, most, err, output.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
	var clients sync.WaitGroup
	for generation := range int64(4) {
		a.sendBody(http.MethodPut, "/v1/intent", linesWithKeys(2000, generation+1, uint32(10_000*(generation+1))).Document())
		for range 16 {
			clients.Go(func() { a.status("/v1/state") })
		}
		clients.Wait()
	}
	used := tasksOf(t, command.Process.Pid)
	a.client.CloseIdleConnections()
	_ = command.Process.Signal(syscall.SIGTERM)
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v\n%.2000s", err, output.String())
	}
	t.Logf("%s: %d of %d tasks", threads, used, most)
	if 2*used > most {
		t.Errorf("%d of %d tasks are in use, which leaves no headroom", used, most)
	}
}

// tasksOf returns the number of threads of a process.
func tasksOf(t *testing.T, pid int) int {
	t.Helper()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	allow(t, err)
	return len(tasks)
}
