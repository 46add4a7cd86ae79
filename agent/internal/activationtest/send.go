// Package activationtest sends the frames of an activation test (ITU-T Y.1564) into a tunnel with VPP's packet
// generator, and removes the generator afterwards.
//
// The frames go directly to the tunnel's output and not through a cross-connect, so they cannot reach a
// customer's port of this router. Their Ethernet addresses are locally administered, and their EtherType is
// reserved for experiments (0x88b5, IEEE 802 local experimental).
package activationtest

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/pg"
	"go.fd.io/govpp/binapi/vlib"

	"longline.dev/agent/internal/vpp"
)

// Frames describes the frames to send.
type Frames struct {
	Tunnel string // the tunnel's name in VPP
	Size   int    // bytes of each frame, without FCS
	Count  int
	Rate   int // frames per second
}

// CannotError says why this VPP cannot send test frames.
type CannotError struct{ Why string }

func (e *CannotError) Error() string { return e.Why }

const (
	header = "0x024c4c000002024c4c00000188b5"
	// grace is the time that a stream may take in addition to the planned time. If VPP's main
	// thread is busy, it starts a stream late.
	grace = 2 * time.Second
	// between is the pause between two queries of a stream's progress. VPP stops its workers for each query.
	between = 20 * time.Millisecond
)

// Send sends the frames, waits until they have left, and removes the generator. It returns the
// number of frames that were sent. It takes at most the time that the count and the rate require,
// plus grace. It returns *CannotError, *vpp.RefusedError, or an error of the connection. Some
// frames may have been sent before the error.
func Send(ctx context.Context, session vpp.Reader, frames Frames) (sent int, err error) {
	if missing := Missing(session.Has); missing != "" {
		return 0, &CannotError{"this VPP has no message " + missing + ", without which it sends no test frames; VPP 25.10 and later have all"}
	}
	if !isOneWord(frames.Tunnel) {
		return 0, &CannotError{fmt.Sprintf("VPP's command line cannot name the tunnel %q", frames.Tunnel)}
	}
	if err := Tidy(ctx, session); err != nil {
		return 0, err
	}
	defer func() {
		if left := Tidy(context.WithoutCancel(ctx), session); left != nil {
			err = cmp.Or(err, fmt.Errorf("tidy up after a test: %w", left))
		}
	}()
	if err := makeGenerator(ctx, session); err != nil {
		return 0, err
	}
	if err := vpp.Order(ctx, session, newStream(frames)); err != nil {
		return 0, err
	}
	if err := vpp.Order(ctx, session, "packet-generator enable-stream "+streamName); err != nil {
		return 0, err
	}
	return await(ctx, session, frames)
}

func newStream(f Frames) string {
	return fmt.Sprintf("packet-generator new { name %s limit %d rate %d size %d-%d source %s node %s data { hex %s } }",
		streamName, f.Count, f.Rate, f.Size, f.Size, generatorName, f.Tunnel, header)
}

// isOneWord reports whether VPP's command line parses a name as one word.
func isOneWord(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("_-./", c))
	})
}

// await waits until all frames have left or the time is over, and returns the number of frames that have
// left.
func await(ctx context.Context, session vpp.Reader, f Frames) (int, error) {
	pause := time.Duration(f.Count) * time.Second / time.Duration(f.Rate)
	deadline := time.Now().Add(pause + grace)
	for {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(pause):
		}
		text, _, err := vpp.RunCLI(ctx, session, "show packet-generator")
		if err != nil {
			return 0, err
		}
		sent, running, err := progress(text)
		if err != nil || !running || time.Now().After(deadline) {
			return sent, err
		}
		pause = between
	}
}

// progress parses the output of format_pg_stream (vnet/pg/cli.c). The output has a row for each stream, with
// the name of the stream, whether it is enabled, and how many frames it has generated.
func progress(text string) (sent int, running bool, err error) {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) >= 3 && fields[0] == streamName {
			made, err := strconv.ParseUint(fields[2], 10, 31)
			if err != nil {
				return 0, false, &vpp.RefusedError{Message: "cli_inband", Why: fmt.Sprintf("%q does not say how many frames were sent", line)}
			}
			return int(made), fields[1] == "Yes", nil
		}
	}
	return 0, false, &vpp.RefusedError{Message: "cli_inband", Why: "the stream of test frames is gone"}
}

// All users of VPP share its packet generators and streams. These names and numbers are reserved for the
// agent, which has only one generator and one stream. If there were several generators, the
// deletion of one generator would corrupt VPP's list of the other generators (pg_interface_delete
// in vnet/pg/stream.c).
const (
	generatorID   = 0x4c4c0000
	generatorName = "pg1280049152"
	generatorTag  = "longline:line-test"
	streamName    = "longline-test"
)

// needed lists the messages that are needed to send test frames.
var needed = []api.Message{&vlib.CliInband{}, &pg.PgCreateInterfaceV3{}, &pg.PgDeleteInterface{}}

// Missing returns the name of the first message that this VPP lacks for test frames, or "" if it can send
// them.
func Missing(has func(api.Message) bool) string { return vpp.Missing(has, needed...) }

// IsGenerator reports whether an interface is the agent's generator, which is a part of the test and not of
// the router's configuration. It also recognizes the generator before the agent has tagged it.
func IsGenerator(m *interfaces.SwInterfaceDetails) bool {
	tag := vpp.Text(m.Tag)
	return vpp.Text(m.InterfaceName) == generatorName && (tag == "" || tag == generatorTag)
}

// Tidy deletes the agent's stream and generator if they exist. Call it after a test and on a new connection,
// because an earlier test may have been interrupted. It returns *CannotError if another user's interface has
// the generator's name, *vpp.RefusedError, or an error of the connection.
func Tidy(ctx context.Context, session vpp.Reader) error {
	if Missing(session.Has) != "" {
		return nil // without these messages, no test could start
	}
	// The stream must be deleted before its generator: a stream without a generator is not safe. If
	// the stream does not exist, VPP replies that there is no such stream and does nothing.
	if _, _, err := vpp.RunCLI(ctx, session, "packet-generator delete "+streamName); err != nil {
		return err
	}
	generator, err := find(ctx, session)
	if err != nil || generator == nil {
		return err
	}
	_, err = vpp.Do(ctx, session, &pg.PgDeleteInterface{SwIfIndex: generator.SwIfIndex})
	return err
}

func find(ctx context.Context, session vpp.Reader) (*interfaces.SwInterfaceDetails, error) {
	var found *interfaces.SwInterfaceDetails
	named := &interfaces.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0), NameFilterValid: true, NameFilter: generatorName}
	err := session.Dump(ctx, []api.Message{named}, func(msg api.Message) {
		if m, ok := msg.(*interfaces.SwInterfaceDetails); ok && vpp.Text(m.InterfaceName) == generatorName {
			found = m
		}
	})
	if err != nil {
		return nil, fmt.Errorf("find the generator: %w", err)
	}
	if found != nil && !IsGenerator(found) {
		return nil, &CannotError{fmt.Sprintf("another client has an interface %s, with the tag %q", generatorName, vpp.Text(found.Tag))}
	}
	return found, nil
}

func makeGenerator(ctx context.Context, session vpp.Reader) error {
	reply, err := vpp.Do(ctx, session, &pg.PgCreateInterfaceV3{InterfaceID: generatorID})
	if err != nil {
		return err
	}
	made := reply.(*pg.PgCreateInterfaceV3Reply)
	_, err = vpp.Do(ctx, session, &interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: made.SwIfIndex, Tag: generatorTag})
	return err
}
