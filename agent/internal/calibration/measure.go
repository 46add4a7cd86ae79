// Package calibration measures what each encapsulation costs a router: the clocks per frame of the nodes of VPP's graph
// that a frame passes from a port into a tunnel, as show runtime has them.
//
// The frames come from VPP's packet generator and go nowhere: through a loop of the agent's own, in a table of its own.
// What generates frames and what a driver does are left out, so the figures rank, and their ratios can be compared.
package calibration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"longline.dev/agent/internal/vpp"
)

// Transport is an encapsulation with its address family.
type Transport string

const (
	L2XC    Transport = "l2xc"
	VXLAN4  Transport = "vxlan4"
	VXLAN6  Transport = "vxlan6"
	GENEVE4 Transport = "geneve4"
	GENEVE6 Transport = "geneve6"
	GRE4    Transport = "gre4"
	GRE6    Transport = "gre6"
)

// Transports is all of them.
var Transports = []Transport{L2XC, VXLAN4, VXLAN6, GENEVE4, GENEVE6, GRE4, GRE6}

func (t Transport) family() int {
	if strings.HasSuffix(string(t), "6") {
		return 6
	}
	return 4
}

// Options of a calibration.
type Options struct {
	Rounds int // of which the median counts
	Frames int // in each round, of 64 bytes
}

// Usual takes some seconds.
var Usual = Options{Rounds: 41, Frames: 64 * 256}

// Node is a node of VPP's graph that every frame passed.
type Node struct {
	Name   string
	Clocks float64 // per frame, median of the rounds
}

// Figure is what a transport costs.
type Figure struct {
	Transport   Transport
	Clocks      float64 // per frame, median of the rounds
	Least, Most float64
	Nodes       []Node // by name
}

// Result of a calibration. Missing is by transport the message that this VPP lacks for it.
type Result struct {
	Options
	Figures   []Figure
	Missing   map[Transport]string
	ClockRate float64 // clocks in a second, 0 if VPP does not say
	CPU       string  // "" if VPP does not say
}

// CannotError says why nothing can be measured in this VPP.
type CannotError struct{ Why string }

func (e *CannotError) Error() string { return e.Why }

// DisturbedError says that other frames passed the same nodes.
type DisturbedError struct {
	Node          string
	Frames, Other int
}

func (e *DisturbedError) Error() string {
	return fmt.Sprintf("other frames pass VPP: %s was handed %d while %d were sent through it", e.Node, e.Frames+e.Other, e.Frames)
}

const (
	header = "0x024c4c000002024c4c00000188b5" // as of test frames: locally administered, and a type that is nobody's
	// grace is how long a round may take.
	grace = 20 * time.Second
	// between is the pause between two looks at a stream. VPP stops its workers for each.
	between = 5 * time.Millisecond
	// tolerated is the part of other frames in a node that does not spoil a round: a router's own protocols go on.
	tolerated = 0.01
	// disturbances is how many rounds in all may be spoilt before it is given up.
	disturbances = 20
)

// Measure builds the loop, measures by turns what each transport costs, and leaves nothing of it in VPP. VPP's runtime
// counters are cleared many times. Error: *CannotError, *vpp.RefusedError, *DisturbedError, or that of the connection.
func Measure(ctx context.Context, session Session, options Options) (result *Result, err error) {
	if message := missing(session, needed...); message != "" {
		return nil, &CannotError{"this VPP has no message " + message + "; calibrating needs VPP 25.10 or later"}
	}
	if err := Tidy(ctx, session); err != nil {
		return nil, err
	}
	if _, err := ownTables(ctx, session); err != nil {
		return nil, err // somebody else's
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

// rounds measures all transports by turns, so that what changes meanwhile changes all of them.
func (l *loop) rounds(ctx context.Context, options Options) (map[Transport][]sample, error) {
	samples := make(map[Transport][]sample)
	left := disturbances
	for range options.Rounds {
		for _, transport := range Transports {
			if _, there := l.tunnels[transport]; !there && transport != L2XC {
				continue
			}
			if err := l.connect(ctx, transport); err != nil {
				return nil, err
			}
			for {
				taken, err := l.round(ctx, transport, options.Frames)
				var disturbed *DisturbedError
				if errors.As(err, &disturbed) && left > 0 {
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

// round sends the frames once.
func (l *loop) round(ctx context.Context, transport Transport, frames int) (sample, error) {
	if _, _, err := vpp.Say(ctx, l.session, "clear runtime"); err != nil {
		return nil, err
	}
	if err := vpp.Order(ctx, l.session, "packet-generator enable-stream "+streamName); err != nil {
		return nil, err
	}
	if err := l.await(ctx); err != nil {
		return nil, err
	}
	text, _, err := vpp.Say(ctx, l.session, "show runtime")
	if err != nil {
		return nil, err
	}
	nodes, err := readRuntime(text)
	if err != nil {
		return nil, err
	}
	return sampleOf(nodes, transport, frames)
}

// sampleOf takes the nodes that every frame passed, but for the generator and the driver: all else is other work.
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

// await returns when all frames were made.
func (l *loop) await(ctx context.Context) error {
	for deadline := time.Now().Add(grace); ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(between):
		}
		text, _, err := vpp.Say(ctx, l.session, "show packet-generator")
		if err != nil {
			return err
		}
		running, there := enabled(text)
		switch {
		case !there:
			return &CannotError{"the stream of frames is gone"}
		case !running:
			return nil
		case time.Now().After(deadline):
			return &CannotError{fmt.Sprintf("VPP does not send the frames within %s", grace)}
		}
	}
}

// enabled reads what format_pg_stream (vnet/pg/cli.c) prints: a line for each stream, with its name and whether it is enabled.
func enabled(text string) (running, there bool) {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == streamName {
			return fields[1] == "Yes", true
		}
	}
	return false, false
}

func figure(transport Transport, samples []sample) Figure {
	f := Figure{Transport: transport}
	sums := make([]float64, 0, len(samples))
	byNode := make(map[string][]float64)
	for _, s := range samples {
		sums = append(sums, s.sum())
		for name, clocks := range s {
			byNode[name] = append(byNode[name], clocks)
		}
	}
	f.Clocks, f.Least, f.Most = median(sums), slices.Min(sums), slices.Max(sums)
	for _, name := range slices.Sorted(maps.Keys(byNode)) {
		f.Nodes = append(f.Nodes, Node{name, median(byNode[name])})
	}
	return f
}

// median is the middle one, or the smaller of the middle two.
func median(values []float64) float64 {
	return slices.Sorted(slices.Values(values))[(len(values)-1)/2]
}

var (
	clockRate = regexp.MustCompile(`clocks/sec ([0-9.]+)`)
	cpuModel  = regexp.MustCompile(`Model name:\s+(.+)`)
)

// machine is the rate of the clock that VPP counts with, and its processor.
func machine(ctx context.Context, session Session) (rate float64, cpu string, err error) {
	text, _, err := vpp.Say(ctx, session, "show clock verbose")
	if err != nil {
		return 0, "", err
	}
	if m := clockRate.FindStringSubmatch(text); m != nil {
		rate, _ = strconv.ParseFloat(m[1], 64)
	}
	if text, _, err = vpp.Say(ctx, session, "show cpu"); err != nil {
		return 0, "", err
	}
	if m := cpuModel.FindStringSubmatch(text); m != nil {
		cpu = strings.TrimSpace(m[1])
	}
	return rate, cpu, nil
}
