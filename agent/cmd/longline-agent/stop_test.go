package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"testing"
	"time"

	"longline.dev/agent/internal/intent"
)

// linesWithKeys returns an intent with the given number of lines on cust0. keys is added to all VNIs.
func linesWithKeys(lines int, generation int64, keys uint32) *intent.Intent {
	in := &intent.Intent{Router: "rhino", Generation: generation}
	for n := range lines {
		in.Present = append(in.Present, intent.End{
			Key: intent.Key{VLL: fmt.Sprintf("00000000-0000-4000-8000-%012d", n), End: "a"}, Revision: int32(generation), AdminUp: true, Frame: 1514,
			Access: intent.Access{Interface: "cust0", Tagging: intent.Dot1q, Outer: uint16(100 + n), Exact: true},
			Tunnel: intent.Tunnel{Encapsulation: intent.VXLAN, VNI: keys + uint32(n),
				Local: netip.MustParseAddr("10.255.0.1"), Remote: netip.MustParseAddr("10.255.0.2")},
		})
	}
	return in
}

func TestSIGTERMDuringAReconciliationInterruptsNoLine(t *testing.T) {
	const lines = 1000
	a := newAgent(t)
	stop := a.start()
	a.awaitReady()
	a.sendBody(http.MethodPut, "/v1/intent", linesWithKeys(lines, 1, 10_000).Document())
	built := len(a.sim.Interfaces())

	answer := make(chan int, 1)
	go func() {
		body := bytes.NewReader(linesWithKeys(lines, 2, 20_000).Document()) // other VNIs: all tunnels are deleted and created again
		request, err := http.NewRequest(http.MethodPut, a.url+"/v1/intent", body)
		if err != nil {
			t.Error(err)
			return
		}
		response, err := a.client.Do(request)
		if err != nil {
			t.Errorf("the running request was not answered: %v", err)
			answer <- 0
			return
		}
		response.Body.Close()
		answer <- response.StatusCode
	}()
	for deadline := time.Now().Add(testTimeout); len(a.sim.Interfaces()) == built; {
		if time.Now().After(deadline) {
			t.Fatal("the second intent changes nothing")
		}
	}
	done, err := a.sim.Busy() // VPP does not respond for a while, in the middle of the changes
	allow(t, err)
	if deleted := built - len(a.sim.Interfaces()); deleted == 0 {
		t.Log("the converge went on before VPP was stopped; it is interrupted later than intended")
	}
	time.AfterFunc(300*time.Millisecond, done)
	stop()
	if status := <-answer; status != http.StatusOK {
		t.Errorf("the running request got status %d", status)
	}
	cut := 0
	for n := range lines {
		if a.sim.Forwarding(fmt.Sprintf("cust0.%d", 100+n)) != nil {
			cut++
		}
	}
	if cut > 0 {
		t.Errorf("after the agent had stopped, %d of %d lines carried nothing", cut, lines)
	}
}

func TestTheUnitsStopTimeoutExceedsTheAgents(t *testing.T) {
	text, err := os.ReadFile(unit)
	allow(t, err)
	found := regexp.MustCompile(`(?m)^TimeoutStopSec=(.+)$`).FindSubmatch(text)
	if found == nil {
		t.Fatal("the unit has no TimeoutStopSec")
	}
	given, err := time.ParseDuration(string(found[1]))
	allow(t, err)
	if closing := given - finishWithin; closing < 10*time.Second {
		t.Errorf("TimeoutStopSec is %s and a converge may take %s, which leaves %s for closing", given, finishWithin, closing)
	}
}
