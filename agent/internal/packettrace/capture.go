// Package packettrace shows packets of one line as VPP's tracer saw them, and leaves nothing of it behind.
package packettrace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"longline.dev/agent/internal/vpp"
)

// VPP's tracer takes whatever comes in at an input node, whoever's it is, and keeps it until it is cleared. So little is taken
// at a time, what is another line's is thrown away unseen, and the rest is cleared before more is taken. VPP takes so many on each
// thread, and stops all of them while it writes out what all have taken: tens of microseconds a packet (docs/routers/diagnose-on-a-router.md). So the threads
// share a round.
const (
	perRound = 50                     // packets that each input node takes on all threads together
	pause    = 250 * time.Millisecond // for which they come in
	clearIn  = 10 * time.Second
)

// inputNodes take in what comes from outside; a VPP has those of its plugins.
var inputNodes = []string{
	"dpdk-input", "af-packet-input", "af_xdp-input", "memif-input", "virtio-input", "vhost-user-input", "avf-input", "rdma-input",
	"vmxnet3-input", "port-rx-eth", "pg-input",
}

// Asked is what is to be shown: packets of these interfaces, by index, for a time at most.
type Asked struct {
	Interfaces map[uint32]string // their names
	Threads    int               // of VPP, the main one included
	Packets    int               // at most
	For        time.Duration
}

// Result is what was shown, in the order of arrival, of so many packets that the tracer took.
type Result struct {
	Packets []Packet
	Looked  int
}

// InUseError says that somebody else uses the tracer, or that an interrupted trace has left something there.
type InUseError struct{ Use Use }

// Use is a use of VPP's tracer that VPP shows. It does not show a trace that has taken no packet yet, nor a filter by node (trace
// filter).
type Use struct {
	is         string // what is so, as a clause
	show, free string // the commands that show and end it
}

var (
	holdsPackets = Use{"VPP's tracer holds packets already: somebody is tracing, or a trace was cut off", "show trace", "clear trace"}
	hasFilter    = Use{"VPP's tracer has a classifier filter that somebody set", "show classify filter verbose", "classify filter trace del"}
	// otherFunction is that of the plugin bpf_trace_filter: with it a classifier filter selects nothing.
	otherFunction = Use{"VPP's tracer selects packets by a function that somebody chose", "show trace filter function", "set trace filter function " + classifierFunction}
)

func (e *InUseError) Error() string {
	if e.Use == (Use{}) {
		return "VPP's tracer is in use. Nothing was changed"
	}
	return fmt.Sprintf("%s. Nothing was changed; look at it with vppctl %s, and when nobody needs it, vppctl %s", e.Use.is, e.Use.show, e.Use.free)
}

// CannotError says why this VPP traces nothing.
type CannotError struct{ Why string }

func (e *CannotError) Error() string { return e.Why }

// LeftError says that the tracer may still hold what it took.
type LeftError struct{ Why error }

func (e *LeftError) Error() string {
	return fmt.Sprintf("VPP's tracer may still hold packets of this trace, which vppctl clear trace removes: %v", e.Why)
}

func (e *LeftError) Unwrap() error { return e.Why }

// Capture shows packets of the interfaces until there are enough, the time is over or ctx ends, and clears the tracer again.
// Error: *InUseError, *CannotError, *LeftError, or that of the connection.
func Capture(ctx context.Context, session vpp.Caller, asked Asked) (result *Result, err error) {
	if err := tracerIsFree(ctx, session); err != nil {
		return nil, err
	}
	defer func() {
		var cannot *CannotError
		if errors.As(err, &cannot) {
			return // nothing was armed
		}
		if left := clearTracer(context.WithoutCancel(ctx), session); left != nil {
			result, err = nil, &LeftError{left}
		}
	}()
	result = &Result{Packets: []Packet{}}
	err = rounds(ctx, session, round{threads: asked.Threads, packets: perRound, pause: pause, most: asked.For}, func(packets []tracedPacket) bool {
		result.Looked += len(packets)
		for _, packet := range packets {
			if packet.isOf(asked.Interfaces) && len(result.Packets) < asked.Packets {
				result.Packets = append(result.Packets, packet.shown(asked.Interfaces))
			}
		}
		return len(result.Packets) == asked.Packets
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// tracerIsFree returns *InUseError while the tracer holds packets.
func tracerIsFree(ctx context.Context, session vpp.Caller) error {
	said, _, err := vpp.Say(ctx, session, "show trace max 1")
	if err != nil {
		return err
	}
	if _, held := parse(said); held > 0 {
		return &InUseError{holdsPackets}
	}
	return nil
}

// round says how the tracer is armed, again and again for the longest time.
type round struct {
	threads int
	packets int           // that each input node traces on all threads together
	pause   time.Duration // for which packets arrive in each round
	most    time.Duration
	arming  string // what follows in the command, such as " filter"
}

// rounds passes the packets of each round to take, until take returns true, the time is over or ctx ends.
// Error: *CannotError, or that of the connection.
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
		said, _, err := vpp.Say(ctx, session, fmt.Sprintf("show trace max %d", perRound*len(nodes))) // of each thread
		if err != nil {
			return err
		}
		packets, _ := parse(said)
		if take(packets) || last {
			return nil
		}
		if err := clearTracer(ctx, session); err != nil {
			return err
		}
	}
}

// arm has each node that exists in this VPP trace so many packets on each thread, and returns these nodes.
func arm(ctx context.Context, session vpp.Caller, nodes []string, packets int, arming string) (there []string, err error) {
	for _, node := range nodes {
		said, refused, err := vpp.Say(ctx, session, fmt.Sprintf("trace add %s %d%s", node, packets, arming))
		if err != nil {
			return nil, err
		}
		if !refused && said == "" {
			there = append(there, node)
		}
	}
	return there, nil
}

func clearTracer(ctx context.Context, session vpp.Caller) error {
	ctx, cancel := context.WithTimeout(ctx, clearIn)
	defer cancel()
	return vpp.Order(ctx, session, "clear trace")
}
