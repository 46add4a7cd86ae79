package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/procmem"
)

// asAgent names the environment variable that makes this test binary run as the agent, with the
// configuration in its value. The test can then measure the agent as a separate process.
const asAgent = "LONGLINE_AGENT_TEST_CONFIG"

func TestMain(m *testing.M) {
	if config := os.Getenv(asAgent); config != "" {
		debug.SetGCPercent(procmem.GCPercent)
		if err := run(context.Background(), []string{"-config", config}, os.Stdout, os.Stderr); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

const mostMemory = 64 << 20 // bytes, with a thousand VLLs

// underRace is set in a build with the race detector, which takes several times the memory.
var underRace bool

// TestTheWholeAgentStaysBelow64MB measures engine, reports and HTTP server together, from the first intent
// through later changes.
func TestTheWholeAgentStaysBelow64MB(t *testing.T) {
	if underRace {
		t.Skip("SKIPPED: under -race the memory is mostly the race detector's")
	}
	a := newAgent(t)
	output := newProcessOutput(t)
	process := exec.CommandContext(t.Context(), os.Args[0])
	process.Env = append(os.Environ(), asAgent+"="+a.config)
	process.Stdout, process.Stderr = output.File, output.File
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Process.Kill(); _ = process.Wait() })
	a.awaitReady()
	in := &intent.Intent{Router: "rhino"}
	for n := range 1000 {
		in.Present = append(in.Present, intent.End{
			Key: intent.Key{VLL: fmt.Sprintf("00000000-0000-4000-8000-%012d", n), End: "a"}, Revision: 1, AdminUp: true, Frame: 1514,
			Access: intent.Access{Interface: "cust0", Tagging: intent.Dot1q, Outer: uint16(1 + n), Exact: true},
			Tunnel: intent.Tunnel{Encapsulation: intent.VXLAN, VNI: uint32(1 + n),
				Local: netip.MustParseAddr("10.255.0.1"), Remote: netip.MustParseAddr("10.255.0.2")},
		})
	}
	for generation := range int64(10) {
		in.Generation = generation + 1
		in.Present[generation].Revision++
		if answer := a.sendBody("PUT", "/v1/intent", in.Document()); answer["applied"] != true {
			t.Fatalf("answered %v\n%s", answer, output)
		}
	}
	await(t, a.portal.counters, "samples of all ends", func(r map[string]any) bool {
		samples := r["samples"].([]any)
		return len(samples[0].(map[string]any)["ends"].([]any)) == 1000
	})
	time.Sleep(3 * time.Second) // time for some more reports
	if peak := peakOf(t, process.Process.Pid); peak > mostMemory {
		t.Errorf("%.1f MB were resident", float64(peak)/1e6)
	} else {
		t.Logf("%.1f MB were resident", float64(peak)/1e6)
	}
}

// peakOf returns the peak resident memory of a process: VmHWM of proc(5), in bytes.
func peakOf(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		t.Fatalf("no VmHWM in %s", status)
	}
	kibibytes, err := strconv.ParseInt(string(found[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kibibytes << 10
}
