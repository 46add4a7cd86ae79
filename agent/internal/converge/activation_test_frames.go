package converge

import (
	"context"
	"fmt"

	"longline.dev/agent/internal/activationtest"
	"longline.dev/agent/internal/calibration"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/plan"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
)

// NotTestingError says why no test frames can be sent through the tunnel of an end.
type NotTestingError struct{ Why string }

func (e *NotTestingError) Error() string { return e.Why }

func notTesting(format string, args ...any) error {
	return &NotTestingError{fmt.Sprintf(format, args...)}
}

// FrameTooLongError reports that a test frame is longer than the end's frames (bytes).
type FrameTooLongError struct{ Frame, Most int }

func (e *FrameTooLongError) Error() string {
	return fmt.Sprintf("a frame of %d bytes is longer than the %d that the line carries here", e.Frame, e.Most)
}

// TestResult is the result of sending test frames.
type TestResult struct {
	Sent     int
	AtMS     int64 // time of the counters
	Counters statseg.TunnelCounters
	VPP      vpp.Info
}

// SendTestFrames sends frames through the tunnel of an end that the stored intent has under test, and then
// reads the tunnel's counters. With a count of 0 it only reads them. It returns *NotTestingError,
// *FrameTooLongError, *activationtest.CannotError, *vpp.RefusedError, *FrozenError, ErrNoVPP, ErrStopping or an
// error of the connection.
func (e *Engine) SendTestFrames(ctx context.Context, request *intent.TestFrames) (*TestResult, error) {
	if err := e.begin(); err != nil {
		return nil, err
	}
	defer e.busy.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err // the client has gone away
	}
	if err := e.frozen(); err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx) // a started test must clean up
	stored := e.heldOrEmpty()
	end := endOf(stored, request.Key)
	switch {
	case end == nil:
		return nil, notTesting("the stored intent names no VLL end %s", request.Key)
	case end.Revision != request.Revision:
		return nil, notTesting("VLL end %s is stored at revision %d", request.Key, end.Revision)
	case !end.Testing:
		return nil, notTesting("VLL end %s is in service, and not under test", request.Key)
	case request.Frame > end.Frame:
		return nil, &FrameTooLongError{request.Frame, end.Frame}
	}
	session, err := e.Session()
	if err != nil {
		return nil, err
	}
	snapshot, err := e.observeForTest(ctx, session, stored, request.VLL)
	if err != nil {
		return nil, err
	}
	todo := e.diffFor(session, map[string]bool{request.VLL: true}, stored, snapshot, e.journal.Of(snapshot.Boot), nil)
	tunnel, err := tunnelOf(end, snapshot, todo)
	if err != nil {
		return nil, err
	}
	result := &TestResult{VPP: session.Info()}
	if request.Count > 0 {
		// VPP 25.10 crashes on GENEVE packets to itself, and a route may lead from the tunnel's table into
		// any other.
		if snapshot.HasAddress(end.Tunnel.Remote) {
			return nil, notTesting("%s, the far endpoint of the tunnel, is an address of this router itself", end.Tunnel.Remote)
		}
		if e.FreeInterfaces != nil { // the generator is an interface too, and VPP aborts if it has too many
			if free, err := e.FreeInterfaces(snapshot.Boot.MS, len(snapshot.Interfaces)); err == nil && free < 1 {
				return nil, &activationtest.CannotError{Why: "VPP's stats segment has no room for one more interface, which a test needs"}
			}
		}
		frames := activationtest.Frames{Tunnel: tunnel.Name, Size: request.Frame, Count: request.Count, Rate: request.Rate}
		if result.Sent, err = activationtest.Send(ctx, session, frames); err != nil {
			return nil, err
		}
	}
	result.AtMS = e.now().UnixMilli()
	if result.Counters, err = e.TunnelCounters(result.VPP.BootMS, tunnel.Index, tunnel.Name); err != nil {
		return nil, err
	}
	e.log.Info("test frames", "end", end.Key.String(), "tunnel", plan.Describe(tunnel), "frame", request.Frame, "sent", result.Sent)
	return result, nil
}

// observeForTest reads only as much as shows whether the VLL is built. An earlier test has moved the epoch
// of VPP's stats segment; then it makes a quick observation.
func (e *Engine) observeForTest(ctx context.Context, session Session, stored *intent.Intent, vll string) (*observe.Snapshot, error) {
	snapshot, err := e.partialObservation(ctx, session, stored, map[string]bool{vll: true})
	if snapshot == nil && err == nil {
		snapshot, err = e.quickObservation(ctx, session, stored)
	}
	return snapshot, err
}

// tunnelOf returns the tunnel of an end, if VPP has it exactly as planned.
func tunnelOf(end *intent.End, s *observe.Snapshot, todo *plan.Plan) (*observe.Interface, error) {
	if reason := todo.Blocked[end.Key]; reason != nil {
		return nil, notTesting("VLL end %s is not built: %s", end.Key, reason.Message)
	}
	for _, op := range todo.Ops {
		if op.End == end.Key {
			return nil, notTesting("VLL end %s is not built: %s of %s is %q and not %q", end.Key, op.Drift.Field, op.Drift.Object,
				op.Drift.Actual, op.Drift.Desired)
		}
	}
	for _, h := range todo.Owned {
		if h.End == end.Key && h.Tunnel != nil && h.Tunnel.Tunnel == end.Tunnel {
			return s.ByIndex(h.Interface.Index), nil
		}
	}
	return nil, notTesting("VLL end %s is not built: it has no tunnel", end.Key)
}

// tidyTests removes the rest of an interrupted test or calibration from VPP: the agent or its connection
// may have failed.
func (e *Engine) tidyTests(ctx context.Context, session Session) {
	if e.begin() != nil {
		return
	}
	defer e.busy.Unlock()
	if e.frozen() != nil {
		return
	}
	if err := activationtest.Tidy(ctx, session); err != nil {
		e.log.Warn("the rest of an activation test in VPP is not removed", "error", err)
	}
	if err := calibration.Tidy(ctx, session); err != nil {
		e.log.Warn("the rest of a calibration in VPP is not removed", "error", err)
	}
}
