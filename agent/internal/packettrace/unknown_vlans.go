package packettrace

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/vpp"
)

// VLAN is a port and the tags of the frames that a sub-interface accepts on the port.
type VLAN struct {
	Port         string
	Tagging      intent.Tagging // Dot1q, QinQ or Dot1ad
	Outer, Inner uint16         // Inner is 0 for one tag
}

// Search selects the VLANs to search.
type Search struct {
	VLANs   []VLAN
	Threads int           // number of VPP's threads, including the main thread
	For     time.Duration // longest duration of the search
	// Begin is called when the tracer has been found free, before the search changes it. An error of Begin ends
	// the search.
	Begin func() error
}

const (
	// searchPause is the length of a round of a search. It is long because VPP's workers stop for 2 to 5 ms
	// while VPP prints a full round.
	searchPause = time.Second
	// perSearch is the number of packets that each input node captures in a round of a search. It is larger than
	// perRound, because another port may carry many frames with the same VLAN number. VPP keeps and prints
	// only dropped frames, at most perRound of them on each thread.
	perSearch = 20 * perRound
	// noFilter is the output of `show classify filter` while the tracer has no filter.
	noFilter = "packet tracer: first table none"
	// classifierFunction is VPP's name for the selection of packets by a classifier filter. In the output
	// of `show trace filter function`, chosenFunction marks the active function.
	classifierFunction = "vnet_is_packet_traced"
	chosenFunction     = "(*) name:"
	// outerTagMask covers the EtherType and the VLAN number of a frame's outer tag, but not its priority.
	outerTagMask = "000000000000000000000000ffff0fff"
)

var (
	// ethernetLine matches an Ethernet header: "IP4: 02:.. -> 02:.. 802.1q vlan 100".
	ethernetLine = regexp.MustCompile(`^\S+: (?:[0-9a-f]{2}:){5}[0-9a-f]{2} -> (?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b`)
	shownTag     = regexp.MustCompile(` 802\.1(q|ad) vlan (\d+)`)
	spaces       = regexp.MustCompile(` +`)
)

// UnknownVLANs counts, for each VLAN of the search, the frames that VPP dropped because their VLAN was
// unknown.
//
// VPP has no message and no command that prints a port's table of VLANs. But if VPP drops a frame that has
// exactly the tags of a sub-interface, the table does not contain that sub-interface.
//
// The tracer captures only frames with these outer tags, at most perSearch per second at each input node, and
// keeps only dropped frames. UnknownVLANs returns as soon as it has found a frame of each VLAN, or when the
// time is over. It returns *InUseError, *CannotError, *LeftError, the error of Begin, or an error of the
// connection.
func UnknownVLANs(ctx context.Context, session vpp.Caller, search Search) (dropped map[VLAN]int, err error) {
	if err := tracerIsFree(ctx, session); err != nil {
		return nil, err
	}
	if err := filterIsFree(ctx, session); err != nil {
		return nil, err
	}
	if err := search.Begin(); err != nil {
		return nil, err
	}
	defer func() {
		if left := Clear(context.WithoutCancel(ctx), session); left != nil {
			dropped, err = nil, &LeftError{left}
		}
	}()
	for _, outer := range outerTags(search.VLANs) {
		line := fmt.Sprintf("classify filter trace mask hex %s match hex 000000000000000000000000%s", outerTagMask, outer)
		if err := vpp.Order(ctx, session, line); err != nil {
			if no, refused := errors.AsType[*vpp.RefusedError](err); refused {
				err = &CannotError{"this VPP cannot filter what it traces: " + no.Why}
			}
			return nil, err
		}
	}
	if err := vpp.Order(ctx, session, fmt.Sprintf("trace filter include error-drop %d", perRound)); err != nil {
		return nil, err
	}
	dropped = make(map[VLAN]int)
	err = rounds(ctx, session, round{threads: search.Threads, packets: perSearch, pause: searchPause, most: search.For, arming: " filter"}, func(packets []tracedPacket) bool {
		for _, packet := range packets {
			if vlan, unknown := packet.unknownVLAN(); unknown && slices.Contains(search.VLANs, vlan) {
				dropped[vlan]++
			}
		}
		return len(dropped) == len(search.VLANs)
	})
	return dropped, err
}

// filterIsFree returns *InUseError while a filter of another user selects packets, and *CannotError if this
// VPP has no filter.
func filterIsFree(ctx context.Context, session vpp.Caller) error {
	text, refused, err := vpp.RunCLI(ctx, session, "show classify filter")
	switch {
	case err != nil:
		return err
	case refused:
		return &CannotError{"this VPP cannot filter what it traces: " + text}
	case !strings.Contains(spaces.ReplaceAllString(text, " "), noFilter):
		return &InUseError{HasFilter}
	}
	functions, refused, err := vpp.RunCLI(ctx, session, "show trace filter function")
	if err != nil {
		return err
	}
	if !refused && strings.Contains(functions, chosenFunction) && !strings.Contains(functions, chosenFunction+classifierFunction+" ") {
		return &InUseError{OtherFunction}
	}
	return nil
}

// Clear clears the tracer and removes the filters of UnknownVLANs.
func Clear(ctx context.Context, session vpp.Caller) error {
	ctx, cancel := context.WithTimeout(ctx, clearIn)
	defer cancel()
	return errors.Join(
		vpp.Order(ctx, session, "clear trace"), vpp.Order(ctx, session, "trace filter none"), vpp.Order(ctx, session, "classify filter trace del"))
}

// outerTags returns the EtherTypes and numbers of the outer tags in hexadecimal, sorted and without
// duplicates.
func outerTags(vlans []VLAN) []string {
	var tags []string
	for _, vlan := range vlans {
		etherType := 0x8100
		if vlan.Tagging == intent.Dot1ad {
			etherType = 0x88a8
		}
		tags = append(tags, fmt.Sprintf("%04x%04x", etherType, vlan.Outer))
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}

// unknownVLAN returns the port and the tags of a packet that ethernet-input dropped because of an unknown
// VLAN.
//
// The tags are in the Ethernet header that ethernet-input or the input node before it prints. While two ports
// receive, dpdk-input and pg-input pass on several batches of packets in one call. In this case VPP does not
// trace ethernet-input for every batch (vlib_put_next_frame before vlib_trace_buffer). But dpdk-input and
// pg-input print the header themselves.
func (p *tracedPacket) unknownVLAN() (vlan VLAN, unknown bool) {
	for _, node := range p.nodes {
		for _, says := range node.Says {
			switch {
			case node.Name == "error-drop" && strings.HasPrefix(says, "rx:"):
				vlan.Port = strings.TrimPrefix(says, "rx:")
			case node.Name == "drop" && says == "ethernet-input: unknown vlan":
				unknown = true
			case ethernetLine.MatchString(says):
				vlan.Tagging, vlan.Outer, vlan.Inner = tagsOf(says)
			}
		}
	}
	return vlan, unknown && vlan.Tagging != ""
}

// tagsOf parses the tags of an Ethernet header, as ethernet-input prints it. tagging is "" if no line can
// have these tags.
func tagsOf(header string) (tagging intent.Tagging, outer, inner uint16) {
	tags := shownTag.FindAllStringSubmatch(header, -1)
	number := func(at int) uint16 {
		n, _ := strconv.ParseUint(tags[at][2], 10, 16)
		return uint16(n)
	}
	switch {
	case len(tags) == 1 && tags[0][1] == "q":
		return intent.Dot1q, number(0), 0
	case len(tags) == 2 && tags[0][1] == "q":
		return intent.QinQ, number(0), number(1)
	case len(tags) == 2:
		return intent.Dot1ad, number(0), number(1)
	}
	return "", 0, 0
}
