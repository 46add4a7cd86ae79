// Package calibration measures the cost of each encapsulation in a router. The cost is the clocks
// per frame of the graph nodes that a frame passes from a port into a tunnel. VPP shows these
// clocks in show runtime.
//
// VPP's packet generator sends the frames through a loop of the agent, in a separate table. The frames
// leave the router on no interface. The figures exclude the generation of frames and the work of drivers,
// so only their order and ratios are meaningful.
package calibration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/tunnel"
	"longline.dev/agent/internal/vpp"
)

// Transport is an encapsulation with its address family.
type Transport string

// L2XC is the transport without an address family.
const L2XC = Transport(intent.L2XC)

// Transports lists all transports.
var Transports = func() (all []Transport) {
	for _, kind := range tunnel.Kinds {
		name := Transport(kind.Encapsulation)
		if name == L2XC {
			all = append(all, name)
		} else {
			all = append(all, name+"4", name+"6")
		}
	}
	return all
}()

// encapsulation returns the transport without its address family.
func (t Transport) encapsulation() intent.Encapsulation {
	return intent.Encapsulation(strings.TrimRight(string(t), "46"))
}

func (t Transport) family() int {
	if strings.HasSuffix(string(t), "6") {
		return 6
	}
	return 4
}

// Options of a calibration.
type Options struct {
	Rounds int // the median of the rounds counts
	Frames int // in each round, of 64 bytes
}

// Usual are the default options; a calibration takes some seconds.
var Usual = Options{Rounds: 41, Frames: 64 * 256}

// Node is a node of VPP's graph that every frame passed.
type Node struct {
	Name   string  `json:"node"`
	Clocks float64 `json:"clocks"` // per frame, median of the rounds, rounded to two decimals
}

// Figure is the cost of a transport.
type Figure struct {
	Transport Transport `json:"transport"`
	Clocks    float64   `json:"clocks"` // per frame, median of the rounds, rounded to two decimals
	Least     float64   `json:"least"`
	Most      float64   `json:"most"`
	Nodes     []Node    `json:"nodes"` // sorted by name
}

// Result is the result of a calibration. Missing maps a transport to the message that this VPP
// lacks for this transport.
type Result struct {
	Options
	Figures   []Figure
	Missing   map[Transport]string
	ClockRate float64 // clocks per second, 0 if VPP does not report it
	CPU       string  // "" if VPP does not report it
}

// CannotError says why this VPP cannot be measured.
type CannotError struct{ Why string }

func (e *CannotError) Error() string { return e.Why }

// DisturbedError reports that other frames passed the same nodes.
type DisturbedError struct {
	Node          string
	Frames, Other int
}

func (e *DisturbedError) Error() string {
	return fmt.Sprintf("other frames pass VPP: %s was handed %d while %d were sent through it", e.Node, e.Frames+e.Other, e.Frames)
}

const (
	header = "0x024c4c000002024c4c00000188b5" // as for test frames: locally administered addresses, and an EtherType that no protocol uses
	// grace is the time limit of a round.
	grace = 20 * time.Second
	// between is the pause between two queries of a stream. VPP stops its workers for each query.
	between = 5 * time.Millisecond
	// tolerated is the largest share of other frames in a node that a round may have. Other frames
	// occur because the router's own protocols continue.
	tolerated = 0.01
	// disturbances is the number of disturbed rounds after which Measure gives up.
	disturbances = 20
)

// Measure builds the loop, measures the cost of the transports in turn, and removes the loop. It clears
// VPP's runtime counters many times. It returns *CannotError, *vpp.RefusedError, *DisturbedError, or an
// error of the connection.
func Measure(ctx context.Context, session vpp.Reader, options Options) (result *Result, err error) {
	if message := vpp.Missing(session.Has, needed...); message != "" {
		return nil, &CannotError{"this VPP has no message " + message + "; calibrating needs VPP 25.10 or later"}
	}
	if err := Tidy(ctx, session); err != nil {
		return nil, err
	}
	if _, err := ownTables(ctx, session); err != nil {
		return nil, err // another user's
	}
	defer func() {
		if left := Tidy(context.WithoutCancel(ctx), session); left != nil {
			result, err = nil, cmp.Or(err, fmt.Errorf("tidy up after a calibration: %w", left))
		}
	}()
	l, err := build(ctx, session)
	if err != nil {
		return nil, err
	}
	stream := fmt.Sprintf("packet-generator new { name %s limit %d size 64-64 source %s node ethernet-input data { hex %s } }",
		streamName, options.Frames, source.name, header)
	if err := vpp.Order(ctx, session, stream); err != nil {
		return nil, err
	}
	result = &Result{Options: options, Missing: make(map[Transport]string)}
	if result.ClockRate, result.CPU, err = machine(ctx, session); err != nil {
		return nil, err
	}
	samples, err := l.rounds(ctx, options)
	if err != nil {
		return nil, err
	}
	for _, transport := range Transports {
		if of := samples[transport]; len(of) > 0 {
			result.Figures = append(result.Figures, figure(transport, of))
		} else {
			result.Missing[transport] = Lacks(transport, session.Has)
		}
	}
	return result, nil
}

// sample is one round of a transport: clocks per frame by node.
type sample map[string]float64

func (s sample) sum() float64 {
	sum := 0.0
	for _, clocks := range s {
		sum += clocks
	}
	return sum
}

// rounds measures all transports in turn, so that changes of the router's load affect all of them.
func (l *loop) rounds(ctx context.Context, options Options) (map[Transport][]sample, error) {
	samples := make(map[Transport][]sample)
	left := disturbances
	for range options.Rounds {
		for _, transport := range Transports {
			if _, exists := l.tunnels[transport]; !exists && transport != L2XC {
				continue
			}
			if err := l.connect(ctx, transport); err != nil {
				return nil, err
			}
			for {
				taken, err := l.round(ctx, transport, options.Frames)
				if _, disturbed := errors.AsType[*DisturbedError](err); disturbed && left > 0 {
					left--
					continue
				}
				if err != nil {
					return nil, err
				}
				samples[transport] = append(samples[transport], taken)
				break
			}
		}
	}
	return samples, nil
}

func (l *loop) round(ctx context.Context, transport Transport, frames int) (sample, error) {
	if _, _, err := vpp.RunCLI(ctx, l.session, "clear runtime"); err != nil {
		return nil, err
	}
	if err := vpp.Order(ctx, l.session, "packet-generator enable-stream "+streamName); err != nil {
		return nil, err
	}
	if err := l.await(ctx); err != nil {
		return nil, err
	}
	text, _, err := vpp.RunCLI(ctx, l.session, "show runtime")
	if err != nil {
		return nil, err
	}
	nodes, err := readRuntime(text)
	if err != nil {
		return nil, err
	}
	return sampleOf(nodes, transport, frames)
}

// sampleOf returns the nodes that every frame passed, without the generator and the driver. It ignores
// other nodes.
func sampleOf(nodes map[string]node, transport Transport, frames int) (sample, error) {
	if arrived := nodes[sink(transport).name+"-tx"].vectors; arrived < frames {
		return nil, &CannotError{fmt.Sprintf("of %d frames %d came through %s", frames, arrived, transport)}
	}
	taken := make(sample)
	for name, n := range nodes {
		switch {
		case n.vectors < frames || name == "pg-input" || strings.HasSuffix(name, "-tx"):
		case float64(n.vectors) > float64(frames)*(1+tolerated):
			return nil, &DisturbedError{name, frames, n.vectors - frames}
		default:
			taken[name] = n.clocks / float64(n.vectors)
		}
	}
	return taken, nil
}

// await returns when all frames were generated.
func (l *loop) await(ctx context.Context) error {
	for deadline := time.Now().Add(grace); ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(between):
		}
		text, _, err := vpp.RunCLI(ctx, l.session, "show packet-generator")
		if err != nil {
			return err
		}
		running, exists := enabled(text)
		switch {
		case !exists:
			return &CannotError{"the stream of frames is gone"}
		case !running:
			return nil
		case time.Now().After(deadline):
			return &CannotError{fmt.Sprintf("VPP does not send the frames within %s", grace)}
		}
	}
}

// enabled parses the output of format_pg_stream (vnet/pg/cli.c). The output has a row for each
// stream, with the stream's name and whether the stream is enabled.
func enabled(text string) (running, exists bool) {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == streamName {
			return fields[1] == "Yes", true
		}
	}
	return false, false
}

func figure(transport Transport, samples []sample) Figure {
	f := Figure{Transport: transport, Nodes: []Node{}}
	sums := make([]float64, 0, len(samples))
	byNode := make(map[string][]float64)
	for _, s := range samples {
		sums = append(sums, s.sum())
		for name, clocks := range s {
			byNode[name] = append(byNode[name], clocks)
		}
	}
	f.Clocks, f.Least, f.Most = hundredths(median(sums)), hundredths(slices.Min(sums)), hundredths(slices.Max(sums))
	for _, name := range slices.Sorted(maps.Keys(byNode)) {
		f.Nodes = append(f.Nodes, Node{name, hundredths(median(byNode[name]))})
	}
	return f
}

// hundredths rounds to two decimals, because VPP prints at most three digits for each node.
func hundredths(clocks float64) float64 { return math.Round(clocks*100) / 100 }

// median returns the middle value, or the smaller of the two middle values.
func median(values []float64) float64 {
	return slices.Sorted(slices.Values(values))[(len(values)-1)/2]
}

var (
	clockRate = regexp.MustCompile(`clocks/sec ([0-9.]+)`)
	cpuModel  = regexp.MustCompile(`Model name:\s+(.+)`)
)

// machine returns the rate of VPP's clock, and the name of the processor.
func machine(ctx context.Context, session vpp.Reader) (rate float64, cpu string, err error) {
	text, _, err := vpp.RunCLI(ctx, session, "show clock verbose")
	if err != nil {
		return 0, "", err
	}
	if m := clockRate.FindStringSubmatch(text); m != nil {
		rate, _ = strconv.ParseFloat(m[1], 64)
	}
	if text, _, err = vpp.RunCLI(ctx, session, "show cpu"); err != nil {
		return 0, "", err
	}
	if m := cpuModel.FindStringSubmatch(text); m != nil {
		cpu = strings.TrimSpace(m[1])
	}
	return rate, cpu, nil
}

// node contains VPP's runtime counters of a graph node, summed over all threads.
type node struct {
	vectors int     // frames that the node received
	clocks  float64 // sum over all frames
}

// Fields of a row of show runtime (vlib/node_cli.c, format_vlib_node_stats). The fields are counted
// from the end of the row, because a state may have two words.
const (
	vectorsField = 4
	clocksField  = 2
	figures      = 5
)

// clocksNames are the names of the column with the clocks: the name before VPP 26.02, and the name
// since then.
var clocksNames = []string{"Clocks", "Packet-Clocks"}

// readRuntime parses the output of show runtime. For each thread, the output has a table of nodes
// with the clocks per frame, rounded to three digits.
func readRuntime(text string) (map[string]node, error) {
	nodes := make(map[string]node)
	headed := false
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) > 0 && fields[0] == "Name" {
			if last := len(fields); last < figures || fields[last-vectorsField] != "Vectors" || !slices.Contains(clocksNames, fields[last-clocksField]) {
				return nil, &CannotError{fmt.Sprintf("this VPP's show runtime has other columns: %q", strings.TrimSpace(line))}
			}
			headed = true
			continue
		}
		last := len(fields)
		if !headed || last < figures+2 {
			continue
		}
		vectors, vectorsErr := strconv.Atoi(fields[last-vectorsField])
		clocks, clocksErr := strconv.ParseFloat(fields[last-clocksField], 64)
		if vectorsErr != nil || clocksErr != nil || vectors <= 0 {
			continue // a heading of a thread, or a process with clocks per call
		}
		sum := nodes[fields[0]]
		nodes[fields[0]] = node{sum.vectors + vectors, sum.clocks + clocks*float64(vectors)}
	}
	if !headed {
		return nil, &CannotError{"this VPP's show runtime lists no nodes"}
	}
	return nodes, nil
}
