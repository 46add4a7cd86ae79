// Package packettrace captures packets of one line with VPP's tracer, and clears the tracer afterwards.
package packettrace

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"longline.dev/agent/internal/vpp"
)

// VPP's tracer captures the packets of all lines at an input node, and keeps them until it is cleared. So the
// agent captures few packets at a time, discards the packets of other lines, and clears the tracer before the
// next round.
//
// VPP captures the requested number of packets on each thread. It stops all threads while it prints the
// packets of all threads, which takes tens of microseconds per packet (docs/routers/diagnose-on-a-router.md).
// So the agent divides the number of packets of a round by the number of threads.
const (
	perRound = 50                     // packets that each input node captures on all threads together
	pause    = 250 * time.Millisecond // length of a round
	clearIn  = 10 * time.Second
)

// inputNodes lists the nodes that receive packets from outside. A VPP has an input node only if it has loaded
// the plugin of the node.
var inputNodes = []string{
	"dpdk-input", "af-packet-input", "af_xdp-input", "memif-input", "virtio-input", "vhost-user-input", "avf-input", "rdma-input",
	"vmxnet3-input", "port-rx-eth", "pg-input",
}

// Request selects the packets to capture: packets of these interfaces, by index, for a limited time.
type Request struct {
	Interfaces map[uint32]string // names of the interfaces
	Threads    int               // number of VPP's threads, including the main thread
	Packets    int               // largest number of packets to return
	For        time.Duration
}

// Result has the captured packets of the line in the order of arrival. Examined is the number of all packets
// that the tracer captured.
type Result struct {
	Packets  []Packet
	Examined int
}

// InUseError reports that another user uses the tracer, or that an interrupted trace has left packets or a
// filter.
type InUseError struct{ Use Use }

// Use describes a use of VPP's tracer that VPP can show. VPP cannot show a trace that has captured no packet
// yet, or a filter by node (trace filter).
type Use struct {
	clause     string // description of the use, as a clause
	show, free string // commands that show and end the use
}

// The uses of the tracer that VPP shows.
var (
	HasPackets = Use{"VPP's tracer contains packets already: another user is tracing, or a trace was interrupted", "show trace", "clear trace"}
	HasFilter  = Use{"VPP's tracer has a classifier filter of another user", "show classify filter verbose", "classify filter trace del"}
	// OtherFunction is a function of the plugin bpf_trace_filter. While this function is active, a classifier
	// filter has no effect.
	OtherFunction = Use{"VPP's tracer selects packets by a function that another user chose", "show trace filter function", "set trace filter function " + classifierFunction}
)

func (e *InUseError) Error() string {
	return fmt.Sprintf("%s. Nothing was changed. Examine it with vppctl %s. If nobody needs it, end it with vppctl %s", e.Use.clause, e.Use.show, e.Use.free)
}

// CannotError says why this VPP cannot trace.
type CannotError struct{ Why string }

func (e *CannotError) Error() string { return e.Why }

// LeftError reports that the tracer may still contain captured packets.
type LeftError struct{ Why error }

func (e *LeftError) Error() string {
	return fmt.Sprintf("VPP's tracer may still contain packets of this trace, which vppctl clear trace removes: %v", e.Why)
}

func (e *LeftError) Unwrap() error { return e.Why }

// Capture captures packets of the interfaces until there are enough packets, the time is over or ctx ends.
// Then it clears the tracer. It returns *InUseError, *CannotError, *LeftError, or an error of the connection.
func Capture(ctx context.Context, session vpp.Caller, request Request) (result *Result, err error) {
	if err := tracerIsFree(ctx, session); err != nil {
		return nil, err
	}
	defer func() {
		if _, cannot := errors.AsType[*CannotError](err); cannot {
			return // the tracer was not started
		}
		if left := clearTracer(context.WithoutCancel(ctx), session); left != nil {
			result, err = nil, &LeftError{left}
		}
	}()
	result = &Result{Packets: []Packet{}}
	err = rounds(ctx, session, round{threads: request.Threads, packets: perRound, pause: pause, most: request.For}, func(packets []tracedPacket) bool {
		result.Examined += len(packets)
		for _, packet := range packets {
			if packet.isOf(request.Interfaces) && len(result.Packets) < request.Packets {
				result.Packets = append(result.Packets, packet.shown(request.Interfaces))
			}
		}
		return len(result.Packets) == request.Packets
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// tracerIsFree returns *InUseError while the tracer contains packets.
func tracerIsFree(ctx context.Context, session vpp.Caller) error {
	text, _, err := vpp.RunCLI(ctx, session, "show trace max 1")
	if err != nil {
		return err
	}
	if _, count := parse(text); count > 0 {
		return &InUseError{HasPackets}
	}
	return nil
}

// round describes how the tracer is started repeatedly. most is the longest time for all rounds together.
type round struct {
	threads int
	packets int           // number of packets that each input node captures on all threads together
	pause   time.Duration // length of a round
	most    time.Duration
	arming  string // end of the trace command, such as " filter"
}

// rounds calls the function take with the packets of each round, until take returns true, the time is over or
// ctx ends. It returns *CannotError, or an error of the connection.
func rounds(ctx context.Context, session vpp.Caller, how round, take func([]tracedPacket) bool) (err error) {
	nodes := inputNodes
	for over := time.After(how.most); ; {
		if nodes, err = arm(ctx, session, nodes, max(1, how.packets/how.threads), how.arming); err != nil {
			return err
		}
		if len(nodes) == 0 {
			return &CannotError{"this VPP has none of the input nodes whose packets can be traced: " + strings.Join(inputNodes, ", ")}
		}
		last := false
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over:
			last = true
		case <-time.After(how.pause):
		}
		text, _, err := vpp.RunCLI(ctx, session, fmt.Sprintf("show trace max %d", perRound*len(nodes))) // per thread
		if err != nil {
			return err
		}
		packets, _ := parse(text)
		if take(packets) || last {
			return nil
		}
		if err := clearTracer(ctx, session); err != nil {
			return err
		}
	}
}

// arm starts the tracer. Every node in nodes that exists in this VPP captures the given number of packets on
// each thread. arm returns the existing nodes.
func arm(ctx context.Context, session vpp.Caller, nodes []string, packets int, arming string) (existing []string, err error) {
	for _, node := range nodes {
		text, refused, err := vpp.RunCLI(ctx, session, fmt.Sprintf("trace add %s %d%s", node, packets, arming))
		if err != nil {
			return nil, err
		}
		if !refused && text == "" {
			existing = append(existing, node)
		}
	}
	return existing, nil
}

func clearTracer(ctx context.Context, session vpp.Caller) error {
	ctx, cancel := context.WithTimeout(ctx, clearIn)
	defer cancel()
	return vpp.Order(ctx, session, "clear trace")
}

// Packet is one captured packet: where it entered, and what each node of VPP's graph printed about it.
type Packet struct {
	At    string `json:"at"`   // time since VPP's start, "00:12:33:904691"
	From  string `json:"from"` // the line's interface on which it entered
	Nodes []Node `json:"nodes"`
}

// Node is a node with the headers that it printed. Payload bytes are removed, because they are the
// customer's data.
type Node struct {
	Name string   `json:"node"`
	Says []string `json:"says"`
}

// tracedPacket is a packet with the complete output of the tracer.
type tracedPacket struct {
	at    string
	nodes []Node
}

var (
	packetLine = regexp.MustCompile(`^Packet \d+$`)
	nodeLine   = regexp.MustCompile(`^(\d+:\d\d:\d\d:\d{6}): (\S+)$`)
	l2Line     = regexp.MustCompile(`^l2-input: sw_if_index (\d+) dst `)
	// headerLine matches an address pair of some protocol: "IP4: 02:.. -> 02:.. 802.1q vlan 100", "UDP:
	// 10.255.0.1 -> 10.255.0.2".
	headerLine = regexp.MustCompile(`^[A-Za-z0-9_. ]+: \S+ -> \S+`)
	// payload matches bytes of the payload, either separated ("data 08 00 45 00 ...") or in one piece.
	payload = regexp.MustCompile(`\b(?:data )?(?:[0-9a-f]{2} ){3,}[0-9a-f]{2}\b|\b(?:0x)?[0-9a-f]{16,}\b`)
)

// parse parses the output of "show trace", and returns the packets and their number.
func parse(text string) (packets []tracedPacket, count int) {
	var current *tracedPacket
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		node := nodeLine.FindStringSubmatch(line)
		switch {
		case packetLine.MatchString(line):
			packets = append(packets, tracedPacket{})
			current = &packets[len(packets)-1]
		case strings.HasPrefix(line, "---"):
			current = nil
		case current == nil || line == "":
		case node != nil:
			if current.at == "" {
				current.at = node[1]
			}
			current.nodes = append(current.nodes, Node{Name: node[2]})
		case len(current.nodes) > 0:
			last := &current.nodes[len(current.nodes)-1]
			last.Says = append(last.Says, line)
		}
	}
	return packets, len(packets)
}

// enteredBy returns the indices of the interfaces on which the packet entered L2, in the order of VPP's
// nodes.
func (p *tracedPacket) enteredBy() (indices []uint32) {
	for _, node := range p.nodes {
		if node.Name != "l2-input" {
			continue
		}
		for _, says := range node.Says {
			if found := l2Line.FindStringSubmatch(says); found != nil {
				if index, err := strconv.ParseUint(found[1], 10, 32); err == nil {
					indices = append(indices, uint32(index))
				}
			}
		}
	}
	return indices
}

// isOf reports whether the packet entered L2 only on these interfaces. If a packet also entered on another
// interface, it belongs to another line too.
func (p *tracedPacket) isOf(interfaces map[uint32]string) bool {
	entered := p.enteredBy()
	for _, index := range entered {
		if _, ours := interfaces[index]; !ours {
			return false
		}
	}
	return len(entered) > 0
}

func (p *tracedPacket) shown(interfaces map[uint32]string) Packet {
	shown := Packet{At: p.at, From: interfaces[p.enteredBy()[0]]}
	for _, node := range p.nodes {
		headers := Node{Name: node.Name, Says: []string{}}
		for n, says := range node.Says {
			if n == 0 || headerLine.MatchString(says) {
				headers.Says = append(headers.Says, payload.ReplaceAllString(says, "…"))
			}
		}
		shown.Nodes = append(shown.Nodes, headers)
	}
	return shown
}
