package packettrace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/vpp"
)

// vlansOfPort starts a real VPP with sub-interfaces of each tagging on the port pg0. The port receives
// frames of all of them, and of VLANs without a sub-interface. On pg1 the same VLANs carry frames too.
func vlansOfPort(t *testing.T) (v *realvpp.VPP, session *vpp.Session) {
	t.Helper()
	v = realvpp.StartOrSkip(t, realvpp.Options{Plugins: []string{"ping"}})
	say := func(format string, args ...any) {
		t.Helper()
		if said, err := v.CLI(fmt.Sprintf(format, args...)); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
	}
	for port := range 2 {
		say("create packet-generator interface pg%d", port)
		say("set interface state pg%d up", port)
		for id, tags := range map[int]string{100: "dot1q 100 exact-match", 200: "dot1q 200 exact-match", 310: "dot1q 300 inner-dot1q 10 exact-match", 410: "dot1ad 400 inner-dot1q 10 exact-match"} {
			say("create sub-interfaces pg%d %d %s", port, id, tags)
			say("set interface state pg%d.%d up", port, id)
		}
		for _, id := range []int{100, 200, 310, 410} {
			say("set interface l2 bridge pg%d.%d 1", port, id)
		}
		for n, tags := range []string{"8100 0064", "8100 00c8", "8100 012c 8100 000a", "88a8 0190 8100 000a", "8100 a064", "8100 01f4", "8100 0064 8100 0005", "4500"} {
			frame := "02000000000a02000000000" + fmt.Sprint(port) + strings.ReplaceAll(tags, " ", "") + "0800" + strings.Repeat("00", 46)
			say("packet-generator new { name s%d-%d limit 0 rate 100 size 64-64 interface pg%d node ethernet-input data { hex 0x%s } }", port, n, port, frame)
		}
	}
	say("packet-generator enable-stream")
	session, err := vpp.Dialer{Socket: v.APISocket(), Timeout: realvpp.ReplyTimeout}.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return v, session
}

var (
	single = VLAN{Port: "pg0", Tagging: intent.Dot1q, Outer: 100}
	double = VLAN{Port: "pg0", Tagging: intent.QinQ, Outer: 300, Inner: 10}
	dot1ad = VLAN{Port: "pg0", Tagging: intent.Dot1ad, Outer: 400, Inner: 10}
)

func begin() error { return nil }

func search(t *testing.T, session *vpp.Session, vlans ...VLAN) map[VLAN]int {
	t.Helper()
	dropped, err := UnknownVLANs(t.Context(), session, Search{VLANs: vlans, Threads: 1, For: 3 * time.Second, Begin: begin})
	if err != nil {
		t.Fatal(err)
	}
	return dropped
}

// TestUnknownVLANsFindsOnlyTheRefusedDuplicate uses a real VPP and each tagging in turn. Meanwhile the same
// VLANs work on another port, and the port drops frames of other VLANs and frames with the same outer tag
// and one more tag.
func TestUnknownVLANsFindsOnlyTheRefusedDuplicate(t *testing.T) {
	v, session := vlansOfPort(t)
	if dropped := search(t, session, single, double, dot1ad); len(dropped) != 0 {
		t.Errorf("all VLANs are known, and it found %v", dropped)
	}
	for _, c := range []struct {
		vlan      VLAN
		duplicate string
	}{
		{single, "create sub-interfaces pg0 999 dot1q 100 exact-match"},
		{double, "create sub-interfaces pg0 998 dot1q 300 inner-dot1q 10 exact-match"},
		{dot1ad, "create sub-interfaces pg0 997 dot1ad 400 inner-dot1q 10 exact-match"},
	} {
		said, err := v.CLI(c.duplicate)
		if err == nil && !strings.Contains(said, "in use") {
			t.Fatalf("the duplicate: %q", said)
		}
		if dropped := search(t, session, c.vlan); dropped[c.vlan] == 0 {
			t.Errorf("%+v: it found nothing", c.vlan)
		}
	}
	other := single
	other.Port = "pg1"
	if dropped := search(t, session, other); len(dropped) != 0 {
		t.Errorf("on the other port it found %v", dropped)
	}
	if err := Clear(t.Context(), session); err != nil { // as after a start of the agent, which does not know what the previous process left
		t.Errorf("clearing what is clear: %v", err)
	}
	for _, command := range []string{"show trace", "show classify filter"} {
		said, err := v.CLI(command)
		if err != nil || strings.Contains(said, "Packet 1") || command == "show classify filter" && !strings.Contains(spaces.ReplaceAllString(said, " "), noFilter) {
			t.Errorf("%s: %s, %v", command, said, err)
		}
	}
}

// TestAnUnknownVLANIsFoundInAPacketWithoutATraceOfEthernetInput: a real VPP 25.10 printed this packet while two
// streams of its packet generator were active.
func TestAnUnknownVLANIsFoundInAPacketWithoutATraceOfEthernetInput(t *testing.T) {
	packets, _ := parse(`------------------- Start of thread 0 vpp_main -------------------
Packet 1

00:00:04:136837: pg-input
  stream s0-2, 64 bytes, sw_if_index 1, next_node ethernet-input
  current data 0, length 64, buffer-pool 0, ref-count 1, trace handle 0x0
  IP4: 02:00:00:00:00:00 -> 02:00:00:00:00:0a 802.1q vlan 300 802.1q vlan 10
  IP6_HOP_BY_HOP_OPTIONS: 0.0.0.0 -> 0.0.0.0
    version 0, header length 0
00:00:04:136879: error-drop
  rx:pg0
00:00:04:136886: drop
  ethernet-input: unknown vlan
`)
	if vlan, unknown := packets[0].unknownVLAN(); !unknown || vlan != double {
		t.Errorf("found %+v, %v", vlan, unknown)
	}
}

func TestUnknownVLANsDoesNotChangeAnOperatorsTraceOrFilter(t *testing.T) {
	for name, commands := range map[string][]string{
		"packets":  {"trace add pg-input 3"},
		"a filter": {"classify filter trace mask l3 ip4 src match l3 ip4 src 192.0.2.1"},
	} {
		t.Run(name, func(t *testing.T) {
			v, session := vlansOfPort(t)
			for _, command := range commands {
				if _, err := v.CLI(command); err != nil {
					t.Fatal(err)
				}
			}
			for deadline := time.Now().Add(10 * time.Second); name == "packets" && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
				if said, _ := v.CLI("show trace"); strings.Contains(said, "Packet 3") {
					break
				}
			}
			begin := func() error { t.Error("the search began"); return nil }
			var inUse *InUseError
			if _, err := UnknownVLANs(t.Context(), session, Search{VLANs: []VLAN{single}, Threads: 1, For: time.Second, Begin: begin}); !errors.As(err, &inUse) {
				t.Errorf("got %v", err)
			}
			trace, _ := v.CLI("show trace")
			filter, _ := v.CLI("show classify filter")
			if name == "packets" && !strings.Contains(trace, "Packet 3") || name == "a filter" && !strings.Contains(spaces.ReplaceAllString(filter, " "), "first table 0") {
				t.Errorf("left of it: %s %s", trace, filter)
			}
		})
	}
}

// TestUnknownVLANsStopsIfAnotherFunctionSelectsPackets covers the BPF plugin's function, which selects
// packets by its own program and not by the filter of the search.
func TestUnknownVLANsStopsIfAnotherFunctionSelectsPackets(t *testing.T) {
	const classifier, bpf = "name:vnet_is_packet_traced description: classifier based filter priority: 50", "name:bpf_trace_filter description: bpf based trace filter priority: 10"
	for functions, inUse := range map[string]bool{
		bpf + "\n(*) " + classifier + "\n":      false,
		"(*) " + bpf + "\n" + classifier + "\n": true,
	} {
		ctx, cancel := context.WithCancel(t.Context())
		vpp := &scriptedCLI{answer: func(line string) (string, bool) {
			if strings.HasPrefix(line, "trace add") {
				cancel()
			}
			return map[string]string{"show classify filter": noFilter, "show trace filter function": functions}[line], false
		}}
		var busy *InUseError
		_, err := UnknownVLANs(ctx, vpp, Search{VLANs: []VLAN{single}, Threads: 1, For: time.Minute, Begin: begin})
		if errors.As(err, &busy) != inUse {
			t.Errorf("%s: %v", functions, err)
		}
		begun := slices.ContainsFunc(vpp.commands, func(line string) bool { return !strings.HasPrefix(line, "show ") })
		if begun == inUse {
			t.Errorf("%s: it sent %q", functions, vpp.commands)
		}
		if inUse && !strings.Contains(err.Error(), "vppctl set trace filter function vnet_is_packet_traced") {
			t.Errorf("got %v", err)
		}
		cancel()
	}
}

// TestASearchBeginsBeforeItChangesTheTracer: Begin records on disk that the tracer has to be cleared.
func TestASearchBeginsBeforeItChangesTheTracer(t *testing.T) {
	noDisk := errors.New("the disk is full")
	for name, c := range map[string]struct {
		answers map[string]string
		begin   error
		begins  int
	}{
		"packets":          {map[string]string{"show trace max 1": "Packet 1\n\n00:00:01:000000: l2-input\n  l2-input: sw_if_index 1\n"}, nil, 0},
		"a filter":         {map[string]string{"show classify filter": "packet tracer: first table 0"}, nil, 0},
		"another function": {map[string]string{"show trace filter function": "(*) name:bpf_trace_filter description: bpf"}, nil, 0},
		"free":             {nil, nil, 1},
		"a full disk":      {nil, noDisk, 1},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		vpp := &scriptedCLI{}
		changes := func() int {
			return len(slices.DeleteFunc(slices.Clone(vpp.commands), func(line string) bool { return strings.HasPrefix(line, "show ") }))
		}
		vpp.answer = func(line string) (string, bool) {
			if strings.HasPrefix(line, "trace add") {
				cancel()
			}
			if text, given := c.answers[line]; given {
				return text, false
			}
			return map[string]string{"show classify filter": noFilter}[line], false
		}
		begins := 0
		_, err := UnknownVLANs(ctx, vpp, Search{VLANs: []VLAN{single}, Threads: 1, For: time.Minute, Begin: func() error {
			if begins++; changes() != 0 {
				t.Errorf("%s: before it began it sent %q", name, vpp.commands)
			}
			return c.begin
		}})
		if begins != c.begins || c.begin != nil && !errors.Is(err, c.begin) {
			t.Errorf("%s: it began %d times, %v", name, begins, err)
		}
		if changed := changes() > 0; changed != (c.begins == 1 && c.begin == nil) {
			t.Errorf("%s: it sent %q", name, vpp.commands)
		}
		cancel()
	}
}

// TestVPPPrintsItsFunctionsInTheExpectedForm uses a real VPP.
func TestVPPPrintsItsFunctionsInTheExpectedForm(t *testing.T) {
	v := realvpp.StartOrSkip(t, realvpp.Options{Plugins: []string{"ping"}})
	if text, err := v.CLI("show trace filter function"); err != nil || !strings.Contains(text, chosenFunction+classifierFunction+" ") {
		t.Errorf("it prints %q, %v", text, err)
	}
}

// TestVPPDoesNotShowAFilterByNode uses a real VPP. A search ends such a filter, because it cannot detect
// it. If a later VPP shows it, the search must leave it unchanged.
func TestVPPDoesNotShowAFilterByNode(t *testing.T) {
	v, session := vlansOfPort(t)
	shows := func() string {
		t.Helper()
		var all strings.Builder
		for _, command := range []string{"show trace", "show classify filter verbose", "show trace filter function"} {
			text, err := v.CLI(command)
			if err != nil {
				t.Fatal(err)
			}
			all.WriteString(text)
		}
		return all.String()
	}
	search(t, session, single) // so that all tables exist
	before := shows()
	if text, err := v.CLI("trace filter include ip4-lookup 7"); err != nil {
		t.Fatal(text, err)
	}
	if after := shows(); after != before {
		t.Errorf("VPP shows a filter by node now: %s\nand without one: %s", after, before)
	}
}

// TestCancelledSearchClearsTheTracer simulates a stop of the agent.
func TestCancelledSearchClearsTheTracer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	vpp := &scriptedCLI{answer: func(line string) (string, bool) {
		if strings.HasPrefix(line, "trace add") {
			cancel()
		}
		return map[string]string{"show classify filter": "packet tracer:                 first table none"}[line], false
	}}
	if _, err := UnknownVLANs(ctx, vpp, Search{VLANs: []VLAN{single}, Threads: 1, For: time.Minute, Begin: begin}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if last := vpp.commands[len(vpp.commands)-3:]; !slices.Equal(last, []string{"clear trace", "trace filter none", "classify filter trace del"}) {
		t.Errorf("the last lines are %q", last)
	}
}

func TestTagsOfADroppedFrameAreParsed(t *testing.T) {
	const header = "IP4: 02:00:00:00:00:0a -> 02:00:00:00:00:0b"
	for says, want := range map[string]VLAN{
		header:                      {},
		header + " 802.1q vlan 100": {Tagging: intent.Dot1q, Outer: 100},
		header + " 802.1q vlan 100 priority 5 cfi":            {Tagging: intent.Dot1q, Outer: 100},
		header + " 802.1q vlan 300 802.1q vlan 10":            {Tagging: intent.QinQ, Outer: 300, Inner: 10},
		header + " 802.1ad vlan 400 802.1ad vlan 10":          {Tagging: intent.Dot1ad, Outer: 400, Inner: 10},
		header + " 802.1ad vlan 400":                          {},
		header + " 802.1q vlan 1 802.1q vlan 2 802.1q vlan 3": {},
	} {
		tagging, outer, inner := tagsOf(says)
		if got := (VLAN{Tagging: tagging, Outer: outer, Inner: inner}); got != want && want.Tagging != "" || want.Tagging == "" && tagging != "" {
			t.Errorf("%s: %+v", says, got)
		}
	}
}
