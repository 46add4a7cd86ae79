package packettrace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/vlib"

	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/vpp"
)

// scriptedCLI simulates VPP's command line, and records the commands.
type scriptedCLI struct {
	commands []string
	answer   func(line string) (text string, refused bool)
}

func (s *scriptedCLI) Call(ctx context.Context, request api.Message) (api.Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	line := request.(*vlib.CliInband).Cmd
	s.commands = append(s.commands, line)
	text, refused := s.answer(line)
	reply := &vlib.CliInbandReply{Reply: text}
	if refused {
		reply.Retval = -1
	}
	return reply, nil
}

func TestCancelledCaptureClearsTheTracer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	vpp := &scriptedCLI{answer: func(line string) (string, bool) {
		if strings.HasPrefix(line, "trace add") {
			cancel()
		}
		return "", false
	}}
	if _, err := Capture(ctx, vpp, Request{Interfaces: vxlanLine, Threads: 1, Packets: 1, For: time.Minute}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if last := vpp.commands[len(vpp.commands)-1]; last != "clear trace" {
		t.Errorf("the last line is %q", last)
	}
}

func TestCaptureReportsPacketsThatItCannotClear(t *testing.T) {
	vpp := &scriptedCLI{answer: func(line string) (string, bool) {
		if strings.HasPrefix(line, "show trace") && strings.HasSuffix(line, " 1") {
			return "", false
		}
		return map[string]string{"clear trace": "no"}[line], line == "clear trace"
	}}
	var left *LeftError
	if _, err := Capture(t.Context(), vpp, Request{Interfaces: vxlanLine, Threads: 1, Packets: 1, For: time.Millisecond}); !errors.As(err, &left) {
		t.Errorf("got %v", err)
	}
}

func TestCaptureNeedsAnInputNode(t *testing.T) {
	vpp := &scriptedCLI{answer: func(line string) (string, bool) { return "", strings.HasPrefix(line, "trace add") }}
	var cannot *CannotError
	if _, err := Capture(t.Context(), vpp, Request{Interfaces: vxlanLine, Threads: 1, Packets: 1, For: time.Minute}); !errors.As(err, &cannot) {
		t.Errorf("got %v", err)
	}
}

// TestThreadsShareThePacketsOfARound: VPP captures the given number on each thread, and stops all threads
// while it prints.
func TestThreadsShareThePacketsOfARound(t *testing.T) {
	for threads, each := range map[int]string{1: "50", 2: "25", 9: "5", 65: "1"} {
		vpp := &scriptedCLI{answer: func(string) (string, bool) { return "", false }}
		if _, err := Capture(t.Context(), vpp, Request{Interfaces: vxlanLine, Threads: threads, Packets: 1, For: time.Millisecond}); err != nil {
			t.Fatal(err)
		}
		for _, line := range vpp.commands {
			if strings.HasPrefix(line, "trace add") && !strings.HasSuffix(line, " "+each) {
				t.Errorf("with %d threads: %s", threads, line)
			}
		}
	}
}

// withTraffic starts a VPP with two lines between two ports, on VLAN 100 and VLAN 200. Frames pass on both
// all the time.
func withTraffic(t *testing.T) (v *realvpp.VPP, session *vpp.Session, one map[uint32]string) {
	t.Helper()
	v = realvpp.StartOrSkip(t, realvpp.Options{Plugins: []string{"ping"}})
	say := func(format string, args ...any) {
		t.Helper()
		if _, err := v.CLI(fmt.Sprintf(format, args...)); err != nil {
			t.Fatal(err)
		}
	}
	for port := range 2 {
		say("create packet-generator interface pg%d", port)
		say("set interface state pg%d up", port)
		for _, vlan := range []int{100, 200} {
			say("create sub-interfaces pg%d %d dot1q %d exact-match", port, vlan, vlan)
			say("set interface state pg%d.%d up", port, vlan)
			say("set interface l2 tag-rewrite pg%d.%d pop 1", port, vlan)
		}
	}
	for _, vlan := range []int{100, 200} {
		for port := range 2 {
			say("set interface l2 xconnect pg%d.%d pg%d.%d", port, vlan, 1-port, vlan)
			say("packet-generator new { name s%d-%d limit 0 rate 200 size 120-120 interface pg%d node ethernet-input "+
				"data { IP4: 02:00:00:00:00:0%d -> 02:00:00:00:00:0b vlan %d UDP: 192.0.2.%d -> 192.0.2.2 UDP: 1 -> 2 incrementing 60 } }",
				port, vlan, port, port, vlan, vlan)
		}
	}
	say("packet-generator enable-stream")
	session, err := vpp.Dialer{Socket: v.APISocket(), Timeout: realvpp.ReplyTimeout}.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return v, session, map[uint32]string{2: "pg0.100", 5: "pg1.100"} // in the order of their creation
}

func TestCaptureShowsOneLineInBothDirectionsAndClearsTheTracer(t *testing.T) {
	v, session, line := withTraffic(t)
	result, err := Capture(t.Context(), session, Request{Interfaces: line, Threads: 1, Packets: 20, For: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Packets) != 20 || result.Examined < 20 {
		t.Errorf("%d packets of %d", len(result.Packets), result.Examined)
	}
	from := make(map[string]int)
	for _, packet := range result.Packets {
		from[packet.From]++
		text := fmt.Sprint(packet)
		if strings.Contains(text, "vlan 200") || strings.Contains(text, "192.0.2.200") || !strings.Contains(text, "192.0.2.100") {
			t.Errorf("%s", text)
		}
	}
	if from["pg0.100"] == 0 || from["pg1.100"] == 0 {
		t.Errorf("by %v", from)
	}
	if left, err := v.CLI("show trace"); err != nil || !strings.Contains(left, "No packets in trace buffer") {
		t.Errorf("left: %s, %v", left, err)
	}
}

func TestCaptureDoesNotChangeAnOperatorsTrace(t *testing.T) {
	v, session, line := withTraffic(t)
	if _, err := v.CLI("trace add pg-input 3"); err != nil {
		t.Fatal(err)
	}
	packets := func() int {
		text, err := v.CLI("show trace")
		if err != nil {
			t.Fatal(err)
		}
		_, count := parse(text)
		return count
	}
	for deadline := time.Now().Add(10 * time.Second); packets() < 3; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the operator's trace takes nothing")
		}
	}
	var inUse *InUseError
	if _, err := Capture(t.Context(), session, Request{Interfaces: line, Threads: 1, Packets: 1, For: time.Second}); !errors.As(err, &inUse) {
		t.Errorf("got %v", err)
	}
	if now := packets(); now != 3 {
		t.Errorf("%d packets are left of the operator's 3", now)
	}
}
