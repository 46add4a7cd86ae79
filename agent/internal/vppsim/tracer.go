package vppsim

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// tracer simulates the packet tracer (vlib/trace.c). It traces the frames that match its filter and that a
// port drops because no sub-interface has the VLAN of the frame.
type tracer struct {
	armed   bool
	filters [][]byte // the outer tags of frames to trace
}

var traceFilter = regexp.MustCompile(`^classify filter trace mask hex 0{24}ffff0fff match hex 0{24}([0-9a-f]{8})$`)

// trace executes a command of the tracer. known is false for all other commands.
func (v *vpp) trace(command string) (output string, retval int32, known bool) {
	m := traceFilter.FindStringSubmatch(command)
	switch {
	case m != nil:
		tag, _ := hex.DecodeString(m[1])
		v.tracer.filters = append(v.tracer.filters, tag)
	case command == "classify filter trace del":
		v.tracer.filters = nil
	case command == "trace filter none", strings.HasPrefix(command, "trace filter include error-drop "):
	case command == "clear trace":
		v.tracer.armed = false
	case command == "show classify filter":
		used := "none"
		if len(v.tracer.filters) > 0 {
			used = "0"
		}
		return fmt.Sprintf("%-30s Table(s)\n%-30s --------\n%-30s first table %s\n", "Filter Used By", "--------------", "packet tracer:", used), 0, true
	case command == "show trace filter function":
		return "(*) name:vnet_is_packet_traced description: classifier based filter priority: 50\n", 0, true
	case strings.HasPrefix(command, "trace add af-packet-input ") && strings.HasSuffix(command, " filter"):
		v.tracer.armed = true
	case strings.HasPrefix(command, "trace add "):
		return "unknown node\n", retvalUnspecified, true
	case strings.HasPrefix(command, "show trace"):
		return v.showTrace(), 0, true
	default:
		return "", 0, false
	}
	return "", 0, true
}

// showTrace prints one frame for each sub-interface that gets no frames because its port drops them.
func (v *vpp) showTrace() string {
	var b strings.Builder
	b.WriteString("------------------- Start of thread 0 vpp_main -------------------\n")
	packets := 0
	for _, i := range v.interfaces.all() {
		if !v.tracer.armed || v.config.Traffic.RateBps == 0 || v.receives(i) || !v.filtered(i.sub) {
			continue
		}
		packets++
		fmt.Fprintf(&b, "Packet %d\n\n00:00:01:000001: af-packet-input\n  af_packet: hw_if_index %d rx-queue 0 next-index 4\n"+
			"00:00:01:000002: ethernet-input\n  IP4: 02:00:00:00:00:0a -> 02:00:00:00:00:0b%s\n"+
			"00:00:01:000003: error-drop\n  rx:%s\n00:00:01:000004: drop\n  ethernet-input: unknown vlan\n\n",
			packets, i.sup, i.sub.shownTags(), v.port(i).name)
	}
	if packets == 0 {
		b.WriteString("No packets in trace buffer\n")
	}
	return b.String()
}

func (v *vpp) filtered(s *subif) bool {
	return slices.ContainsFunc(v.tracer.filters, func(tag []byte) bool {
		return (uint16(tag[0])<<8|uint16(tag[1]) == 0x88a8) == (s.flags&dot1ad != 0) && uint16(tag[2])<<8|uint16(tag[3]) == s.outer
	})
}

// shownTags returns the tags of a frame in the form of ethernet-input. As in VPP, all tags have the name of
// the first tag's type.
func (s *subif) shownTags() string {
	name := "802.1q"
	if s.flags&dot1ad != 0 {
		name = "802.1ad"
	}
	tags := fmt.Sprintf(" %s vlan %d", name, s.outer)
	if s.numberOfTags() == 2 {
		tags += fmt.Sprintf(" %s vlan %d", name, s.inner)
	}
	return tags
}
