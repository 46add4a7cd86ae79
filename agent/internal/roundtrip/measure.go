// Package roundtrip measures how long packets take to another router and back, with VPP's ping plugin.
package roundtrip

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"longline.dev/agent/internal/vpp"
)

// Way is between two addresses of routers: From is an interface with the address that answers come to.
type Way struct {
	From string
	To   netip.Addr
}

// Times are round trips. Of none that came back, they are zero.
type Times struct {
	Sent, Received int
	Min, Avg, Max  time.Duration
}

// CannotError says why this VPP measures no round trips.
type CannotError struct{ Why string }

func (e *CannotError) Error() string { return e.Why }

const (
	packets = 5
	// soon and late are the pauses between packets, and how long the last answer is waited for. Most networks are no
	// larger than the first, and all of the second is longer than by two satellites.
	soon = 10 * time.Millisecond
	late = 250 * time.Millisecond
	// grace is how much longer than its pauses a ping may take. A busy main thread starts it late.
	grace = 2 * time.Second
)

// Measure sends a few small packets, and more slowly once more where not all came back in time: that is a way so
// long, or one that loses some. Error: *CannotError, or that of the connection.
func Measure(ctx context.Context, socket string, way Way) (Times, error) {
	times, err := ping(ctx, socket, way, soon)
	if err == nil && times.Received < times.Sent {
		return ping(ctx, socket, way, late)
	}
	return times, err
}

func ping(ctx context.Context, socket string, way Way, interval time.Duration) (Times, error) {
	ctx, cancel := context.WithTimeout(ctx, packets*interval+grace)
	defer cancel()
	command := fmt.Sprintf("ping %s source %s repeat %d interval %g", way.To, way.From, packets, interval.Seconds())
	text, err := vpp.CLI(ctx, socket, command)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ECONNREFUSED) {
		return Times{}, &CannotError{fmt.Sprintf("VPP's CLI does not answer at %s (vpp.cli_socket): %v", socket, err)}
	}
	if err != nil {
		return Times{}, err
	}
	return read(text)
}

// read reads what ping prints (plugins/ping/ping.c): a line for each answer, and how many were sent and received.
func read(text string) (Times, error) {
	var times Times
	var total time.Duration
	counted, lines := false, 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if n, err := fmt.Sscanf(line, "Statistics: %d sent, %d received,", &times.Sent, &times.Received); n == 2 && err == nil {
			counted = true
			continue
		}
		_, said, found := strings.Cut(line, " time=")
		if !found {
			continue
		}
		ms, err := strconv.ParseFloat(strings.TrimSuffix(said, " ms"), 64)
		if err != nil || ms < 0 {
			return Times{}, fmt.Errorf("VPP's ping printed %q, which says no time", line)
		}
		took := time.Duration(ms * float64(time.Millisecond))
		if lines == 0 || took < times.Min {
			times.Min = took
		}
		times.Max = max(times.Max, took)
		total += took
		lines++
	}
	switch {
	case !counted && strings.Contains(text, "unknown"):
		return Times{}, &CannotError{"this VPP has no ping: its ping plugin is not loaded"}
	case !counted:
		return Times{}, fmt.Errorf("VPP's ping printed no statistics: %q", strings.TrimSpace(text))
	case times.Sent == 0:
		return Times{}, fmt.Errorf("VPP sent no ping: %q", strings.TrimSpace(text))
	case times.Received != lines:
		return Times{}, fmt.Errorf("VPP's ping counted %d answers and printed %d", times.Received, lines)
	case lines > 0:
		times.Avg = total / time.Duration(lines)
	}
	return times, nil
}
