package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/vpp"
)

// backWithin is the time that a new agent may take to apply an intent. On an idle machine 5 s are enough;
// it is doubled because tests share the machine.
const backWithin = 10 * time.Second

// kills returns how often a working agent is killed: LONGLINE_KILLS, or a default.
func kills(t *testing.T) int {
	requested := os.Getenv("LONGLINE_KILLS")
	if requested == "" {
		return 20
	}
	number, err := strconv.Atoi(requested)
	if err != nil {
		t.Fatalf("LONGLINE_KILLS: %v", err)
	}
	return number
}

func TestAKilledAgentRecoversQuicklyAndLeavesNoConnectionsInVPP(t *testing.T) {
	t.Run("vppsim", func(t *testing.T) {
		a := newAgent(t)
		w := worker{agent: a, port: "cust0", lines: 60, clients: a.sim.Clients}
		w.killed(t, kills(t), func() { a.sim.LeaveErrno(syscall.EAGAIN) }) // pipelining leaves this errno in VPP
	})
	t.Run("real VPP", func(t *testing.T) {
		real := realvpp.StartOrSkip(t, realvpp.Options{Plugins: []string{"vxlan"}})
		furnish(t, real)
		a := newAgent(t)
		config, err := os.ReadFile(a.config)
		allow(t, err)
		useRealVPP := strings.NewReplacer(a.sim.APISocket(), real.APISocket(), a.sim.StatsSocket(), real.StatsSocket())
		allow(t, os.WriteFile(a.config, []byte(useRealVPP.Replace(string(config))), 0o600))
		// Reading this many lines fills VPP's socket, so that VPP's errno is EAGAIN afterwards.
		w := worker{agent: a, port: "loop100", lines: 500, clients: func() int { return accepted(t, real.APISocket()) }}
		w.killed(t, kills(t), func() {})
		const span = 2 * time.Second
		before := processorTime(t, real.PID())
		time.Sleep(span)
		used := processorTime(t, real.PID()) - before
		t.Logf("left alone VPP took %s of the processor in %s", used, span)
		if used > span/2 {
			t.Error("VPP is busy with nothing")
		}
	})
}

// worker is an agent that receives intents while it is killed repeatedly.
type worker struct {
	*agent
	port       string
	lines      int
	clients    func() int // connections that VPP keeps open
	generation int64
	program    string
	process    *exec.Cmd
}

func (w *worker) killed(t *testing.T, times int, beforehand func()) {
	w.portal.away.Store(true) // no one reads the reports that it collects
	w.program = filepath.Join(t.TempDir(), "longline-agent")
	if out, err := exec.Command("go", "build", "-o", w.program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	clients, slowest, late, most := w.clients(), time.Duration(0), 0, 0
	for n := range times {
		back := w.begin(t)
		slowest = max(slowest, back)
		if back > 5*time.Second {
			late++
		}
		most = max(most, w.clients())
		done := make(chan bool)
		go func() {
			defer close(done)
			for w.order() {
			}
		}()
		time.Sleep(rand.N(300 * time.Millisecond))
		beforehand()
		w.kill(t)
		<-done
		if t.Failed() {
			t.Fatalf("after %d kills", n)
		}
	}
	w.begin(t)
	if left := temporaries(t, filepath.Join(filepath.Dir(w.config), "state")); len(left) > 1 { // the agent may be writing one of them
		t.Errorf("files of the agents that were killed are left: %q", left)
	}
	await := func(want int) {
		t.Helper()
		for deadline := time.Now().Add(testTimeout); w.clients() != want; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("VPP keeps %d clients, want %d", w.clients(), want)
			}
		}
	}
	await(clients + 1)
	allow(t, w.process.Process.Signal(syscall.SIGTERM))
	_ = w.process.Wait()
	await(clients)
	t.Logf("%d kills: the slowest was back after %s, %d after more than 5 s; VPP had %d clients at most", times, slowest, late, most)
}

// begin starts the program and returns how long it took until VPP matched the intent.
func (w *worker) begin(t *testing.T) time.Duration {
	t.Helper()
	var output bytes.Buffer
	w.process = exec.Command(w.program, "-config", w.config)
	w.process.Stderr = &output
	w.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := time.Now()
	allow(t, w.process.Start())
	for !w.order() {
		if time.Since(started) > backWithin {
			w.kill(t)
			t.Fatalf("it is not back after %s; VPP has %d clients\n%s", backWithin, w.clients(), output.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
	return time.Since(started)
}

func (w *worker) kill(t *testing.T) {
	t.Helper()
	w.client.CloseIdleConnections()
	allow(t, w.process.Process.Kill())
	_ = w.process.Wait()
}

// order sends an intent that adds or removes lines. It returns false if the agent did not carry it out.
func (w *worker) order() bool {
	w.generation++
	in := intent.Intent{Router: "rhino", Generation: w.generation}
	for n := range w.lines {
		key := intent.Key{VLL: fmt.Sprintf("00000000-0000-4000-8000-%012d", n), End: "a"}
		if w.generation%2 == 0 {
			in.Removed = append(in.Removed, intent.Tombstone{Key: key, Revision: int32(w.generation)})
			continue
		}
		in.Present = append(in.Present, intent.End{
			Key: key, Revision: int32(w.generation), AdminUp: true, Frame: 1514,
			Access: intent.Access{Interface: w.port, Tagging: intent.Dot1q, Outer: uint16(100 + n), Exact: true},
			Tunnel: intent.Tunnel{Encapsulation: intent.VXLAN, VNI: uint32(1000 + n),
				Local: netip.MustParseAddr("10.255.0.1"), Remote: netip.MustParseAddr("10.255.0.2")},
		})
	}
	request, err := http.NewRequest(http.MethodPut, w.url+"/v1/intent", bytes.NewReader(in.Document()))
	if err != nil {
		return false
	}
	response, err := w.client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	var answer struct {
		Applied bool
		Ends    []struct{ Status string }
	}
	if json.NewDecoder(response.Body).Decode(&answer) != nil || !answer.Applied {
		return false
	}
	for _, end := range answer.Ends {
		if end.Status != "verified" && end.Status != "removed" {
			return false
		}
	}
	return true
}

// furnish creates a customer's port and the address where tunnels begin.
func furnish(t *testing.T, real *realvpp.VPP) {
	t.Helper()
	session, err := vpp.Dialer{Socket: real.APISocket(), Timeout: realvpp.ReplyTimeout}.Dial(t.Context())
	allow(t, err)
	defer session.Close()
	for _, instance := range []uint32{0, 100} {
		reply, err := session.Call(t.Context(), &interfaces.CreateLoopbackInstance{IsSpecified: true, UserInstance: instance})
		allow(t, err)
		made := reply.(*interfaces.CreateLoopbackInstanceReply).SwIfIndex
		_, err = session.Call(t.Context(), &interfaces.SwInterfaceSetFlags{SwIfIndex: made, Flags: interface_types.IF_STATUS_API_FLAG_ADMIN_UP})
		allow(t, err)
		if instance == 0 {
			_, err = session.Call(t.Context(), &interfaces.SwInterfaceAddDelAddress{SwIfIndex: made, IsAdd: true,
				Prefix: ip_types.AddressWithPrefix{Address: vpp.IPAddress(netip.MustParseAddr("10.255.0.1")), Len: 32}})
			allow(t, err)
		}
	}
}

// accepted returns the number of connections that the listener of a socket keeps open, according to the
// kernel.
func accepted(t *testing.T, socket string) int {
	t.Helper()
	const connected = "03"
	table, err := os.ReadFile("/proc/net/unix")
	allow(t, err)
	found := 0
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) == 8 && fields[5] == connected && fields[7] == socket {
			found++
		}
	}
	return found
}

// processorTime returns the CPU time that a process has used so far (proc_pid_stat(5)).
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	const ticks = 100 // per second, on every platform that Linux supports today
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	allow(t, err)
	_, behindName, _ := strings.Cut(string(stat), ") ")
	fields, sum := strings.Fields(behindName), 0
	for _, each := range fields[11:13] {
		taken, err := strconv.Atoi(each)
		allow(t, err)
		sum += taken
	}
	return time.Duration(sum) * time.Second / ticks
}
