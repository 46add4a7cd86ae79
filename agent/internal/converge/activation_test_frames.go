package converge

import (
	"context"
	"fmt"
	"maps"
	"time"

	"longline.dev/agent/internal/activationtest"
	"longline.dev/agent/internal/calibration"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/plan"
	"longline.dev/agent/internal/roundtrip"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
)

// NotTestingError says why no test frames can be sent through the tunnel of an end.
type NotTestingError struct{ Why string }

func (e *NotTestingError) Error() string { return e.Why }

func notTesting(format string, args ...any) error {
	return &NotTestingError{fmt.Sprintf(format, args...)}
}

// FrameTooLongError reports that a test frame of Frame bytes is longer than Most, the length (bytes) of the
// longest frame that the line carries at this end.
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

// SendTestFrames sends test frames through the tunnel of an end, and then reads the tunnel's
// counters. In the stored intent, the end must be under test and have the requested revision. If
// request.Count is 0, SendTestFrames only reads the counters. It returns *NotTestingError,
// *FrameTooLongError, *activationtest.CannotError,
// *vpp.RefusedError, *FrozenError, ErrNoVPP, ErrStopping, or an error of ctx, of the connection or of
// Engine.TunnelCounters.
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
	ctx = context.WithoutCancel(ctx) // a test that has started must clean up
	stored := e.storedOrEmpty()
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
		// VPP 25.10 crashes if it sends GENEVE packets to itself. The check covers addresses in all tables, because
		// a route may lead from the tunnel's table into any other table.
		if snapshot.HasAddress(end.Tunnel.Remote) {
			return nil, notTesting("%s, the far endpoint of the tunnel, is an address of this router itself", end.Tunnel.Remote)
		}
		if e.options.FreeInterfaces != nil { // the test creates an interface for its packet generator, and VPP aborts if it has too many interfaces
			if free, err := e.options.FreeInterfaces(snapshot.Boot.MS, len(snapshot.Interfaces)); err == nil && free < 1 {
				return nil, &activationtest.CannotError{Why: "VPP's stats segment has no room for one more interface, which a test needs"}
			}
		}
		frames := activationtest.Frames{Tunnel: tunnel.Name, Size: request.Frame, Count: request.Count, Rate: request.Rate}
		if result.Sent, err = activationtest.Send(ctx, session, frames); err != nil {
			return nil, err
		}
	}
	result.AtMS = e.now().UnixMilli()
	if result.Counters, err = e.options.TunnelCounters(result.VPP.BootMS, tunnel.Index, tunnel.Name); err != nil {
		return nil, err
	}
	e.log.Info("test frames", "end", end.Key.String(), "tunnel", plan.Describe(tunnel), "frame", request.Frame, "sent", result.Sent)
	return result, nil
}

// observeForTest observes VPP to find whether the VLL is built. A partial observation is enough for
// this. If a partial observation is not possible, observeForTest makes a quick observation. One
// possible reason is that an earlier test has changed the epoch of VPP's stats segment.
func (e *Engine) observeForTest(ctx context.Context, session Session, stored *intent.Intent, vll string) (*observe.Snapshot, error) {
	snapshot, err := e.partialObservation(ctx, session, stored, map[string]bool{vll: true})
	if snapshot == nil && err == nil {
		snapshot, err = e.quickObservation(ctx, session, stored)
	}
	return snapshot, err
}

// tunnelOf returns the interface of an end's tunnel. It returns *NotTestingError unless VPP has the end
// exactly as the intent requires.
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

// tidyTests removes the objects that an interrupted activation test or calibration left in VPP. The agent or
// its connection may have failed before it could remove them. On a frozen router, tidyTests does nothing.
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

// MeasureRoundTrip measures the round-trip time between the two endpoints of a tunnel, with small packets.
// The tunnel belongs to an end of the stored intent. It changes nothing in VPP and does not delay other work.
// It returns *NotTestingError, *roundtrip.CannotError, ErrNoVPP, ErrStopping or an error of the connection.
func (e *Engine) MeasureRoundTrip(ctx context.Context, request *intent.RoundTrip) (*roundtrip.Times, error) {
	end := endOf(e.storedOrEmpty(), request.Key)
	switch {
	case end == nil:
		return nil, notTesting("the stored intent names no VLL end %s", request.Key)
	case end.Revision != request.Revision:
		return nil, notTesting("VLL end %s is stored at revision %d", request.Key, end.Revision)
	case !end.Tunnel.Local.IsValid():
		return nil, notTesting("VLL end %s has no tunnel", request.Key)
	}
	state, err := e.ObservedState(ctx)
	if err != nil {
		return nil, err
	}
	near := state.Snapshot.ByAddress(end.Tunnel.Table, end.Tunnel.Local)
	if near == nil {
		return nil, notTesting("%s, the near endpoint of the tunnel, is not an address of this router", end.Tunnel.Local)
	}
	times, err := roundtrip.Measure(ctx, e.options.CLISocket, roundtrip.Path{From: near.Name, To: end.Tunnel.Remote})
	if err != nil {
		return nil, err
	}
	return &times, nil
}

// testedFor is the duration for which the engine remembers that an end was tested. The interval between two
// samples of the counters is much shorter.
const testedFor = time.Hour

// noteTested records the ends that are under test now in any of these intents. It ignores nil intents.
func (e *Engine) noteTested(intents ...*intent.Intent) {
	now := e.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.tested, func(_ intent.Key, at time.Time) bool { return now.Sub(at) > testedFor })
	for _, in := range intents {
		if in == nil {
			continue
		}
		for _, end := range in.Present {
			if end.Testing {
				e.tested[end.Key] = now
			}
		}
	}
}

// TestedSince returns the ends that were under test at any time since the given time. The tunnels of these
// ends receive test frames, and VPP drops these frames. The stored intent is not enough to find these ends,
// because a test may start and end between two samples of the counters.
func (e *Engine) TestedSince(since time.Time) map[intent.Key]bool {
	stored, _ := e.store.Current()
	e.noteTested(stored)
	e.mu.Lock()
	defer e.mu.Unlock()
	tested := make(map[intent.Key]bool)
	for key, at := range e.tested {
		if !at.Before(since) {
			tested[key] = true
		}
	}
	return tested
}
