// Package roundtrip measures round-trip times to another router with VPP's ping plugin.
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

// Path connects two addresses of routers. From is an interface with the destination address of replies.
type Path struct {
	From string
	To   netip.Addr
}

// Times are round-trip times. They are zero if no packet came back.
type Times struct {
	Sent, Received int
	Min, Avg, Max  time.Duration
}

// CannotError says why this VPP cannot measure round-trip times.
type CannotError struct{ Why string }

func (e *CannotError) Error() string { return e.Why }

const (
	packets = 5
	// soon and late are the pauses between packets, and also the time to wait for the last reply. In most
	// networks, a round trip takes less time than soon. The time in late is longer than the round trip over
	// two satellites.
	soon = 10 * time.Millisecond
	late = 250 * time.Millisecond
	// grace is the time that a ping may take in addition to its pauses. If VPP's main thread is busy, it
	// starts a ping late.
	grace = 2 * time.Second
)

// Measure sends a few small packets. If not all packets return in time, the path is long or loses packets,
// and Measure sends the packets again more slowly. It returns *CannotError or an error of the connection.
func Measure(ctx context.Context, socket string, path Path) (Times, error) {
	times, err := ping(ctx, socket, path, soon)
	if err == nil && times.Received < times.Sent {
		return ping(ctx, socket, path, late)
	}
	return times, err
}

func ping(ctx context.Context, socket string, path Path, interval time.Duration) (Times, error) {
	ctx, cancel := context.WithTimeout(ctx, packets*interval+grace)
	defer cancel()
	command := fmt.Sprintf("ping %s source %s repeat %d interval %g", path.To, path.From, packets, interval.Seconds())
	text, err := vpp.CLI(ctx, socket, command)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ECONNREFUSED) {
		return Times{}, &CannotError{fmt.Sprintf("VPP's CLI does not answer at %s (vpp.cli_socket): %v", socket, err)}
	}
	if err != nil {
		return Times{}, err
	}
	return read(text)
}

// read parses the output of ping (plugins/ping/ping.c). The output has a row for each reply, and the numbers
// of sent and received packets.
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
		_, value, found := strings.Cut(line, " time=")
		if !found {
			continue
		}
		ms, err := strconv.ParseFloat(strings.TrimSuffix(value, " ms"), 64)
		if err != nil || ms < 0 {
			return Times{}, fmt.Errorf("VPP's ping printed %q, which contains no time", line)
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
