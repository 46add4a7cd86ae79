package converge

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"longline.dev/agent/internal/activationtest"
	"longline.dev/agent/internal/calibration"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/packettrace"
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

// ErrTracing reports that another trace is running.
var ErrTracing = notTesting("another trace is under way: only one at a time has VPP's tracer")

// Tracer captures packets with VPP's tracer. VPP has only one, so only one trace runs at a time.
type Tracer struct {
	engine  *Engine
	tracing sync.Mutex
}

// begin prevents other traces until the trace calls end. The engine's FinishWork ends the context working, and
// waits for the call of end. begin returns ErrTracing, ErrNoVPP or an error of the connection.
func (t *Tracer) begin(ctx context.Context) (session Session, working context.Context, end func(), err error) {
	if !t.tracing.TryLock() {
		return nil, nil, nil, ErrTracing
	}
	working, release := t.engine.untilStopped(ctx)
	end = func() {
		release()
		t.tracing.Unlock()
	}
	if session, err = t.engine.Session(); err != nil {
		end()
		return nil, nil, nil, err
	}
	return session, working, end, nil
}

// Trace captures packets of a line with VPP's tracer. It changes no configuration and does not delay a
// converge, so it also works on a frozen router. It returns ErrTracing, *NotTestingError if the line has no
// interfaces here, errors of packettrace.Capture, ErrNoVPP, ErrStopping or an error of the connection.
func (t *Tracer) Trace(ctx context.Context, vll string, packets int, most time.Duration) (*packettrace.Result, error) {
	e := t.engine
	session, ctx, end, err := t.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	before, err := e.interfacesOf(ctx, vll)
	if err != nil {
		return nil, err
	}
	if len(before) == 0 {
		return nil, notTesting("the agent has made nothing for line %s in VPP", vll)
	}
	e.log.Info("trace", "vll", vll, "packets", packets, "for", most.String())
	threads := 1 + session.Info().Workers
	result, err := packettrace.Capture(ctx, session, packettrace.Request{Interfaces: before, Threads: threads, Packets: packets, For: most})
	if err != nil {
		return nil, e.orStopped(err)
	}
	// VPP reuses interface indices. If the interfaces have changed, the packets may belong to another line.
	after, err := e.interfacesOf(ctx, vll)
	if err != nil {
		return nil, err
	}
	if !maps.Equal(before, after) {
		return nil, notTesting("the interfaces of line %s changed during the trace, so nothing is shown; try again", vll)
	}
	return result, nil
}

// interfacesOf returns the names of the line's current interfaces by index.
func (e *Engine) interfacesOf(ctx context.Context, vll string) (map[uint32]string, error) {
	if err := e.begin(); err != nil {
		return nil, err
	}
	defer e.busy.Unlock()
	session, err := e.Session()
	if err != nil {
		return nil, err
	}
	stored := e.storedOrEmpty()
	snapshot, err := e.quickObservation(ctx, session, stored) // a quick observation detects interfaces that reuse an index
	if err != nil {
		return nil, err
	}
	found := make(map[uint32]string)
	for _, h := range e.diff(stored, snapshot, e.journal.Of(snapshot.Boot), nil).Owned {
		if h.End.VLL == vll {
			found[h.Interface.Index] = h.Interface.Name
		}
	}
	return found, nil
}

// searchUnknownFor is the longest search for frames of unknown VLANs.
const searchUnknownFor = 10 * time.Second

// UnknownVLANs counts, for each of these VLANs, the frames that VPP drops because it does not know their
// VLAN. It changes no forwarding and does not delay a converge. When it has found that the tracer
// is free, and before it changes the tracer, it calls the function begin. It returns ErrTracing,
// errors of packettrace.UnknownVLANs, ErrNoVPP or an error of the connection.
func (t *Tracer) UnknownVLANs(ctx context.Context, vlans []packettrace.VLAN, begin func() error) (map[packettrace.VLAN]int, error) {
	session, ctx, end, err := t.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	threads := 1 + session.Info().Workers
	return packettrace.UnknownVLANs(ctx, session, packettrace.Search{VLANs: vlans, Threads: threads, For: searchUnknownFor, Begin: begin})
}

// ClearTracer removes filters and packets from VPP's tracer. An agent leaves filters and packets in the
// tracer if it is killed during UnknownVLANs. It returns ErrTracing, ErrNoVPP or an error of the connection.
func (t *Tracer) ClearTracer(ctx context.Context) error {
	session, ctx, end, err := t.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	return packettrace.Clear(ctx, session)
}

// InServiceError says why this router must not be calibrated: it is in service, or it is not known to be
// under maintenance.
type InServiceError struct{ Why string }

func (e *InServiceError) Error() string { return e.Why }

// Calibrated is the result of a calibration.
type Calibrated struct {
	*calibration.Result
	AtMS int64
	VPP  vpp.Info
}

// Calibrator measures the cost of encapsulations in the engine's VPP.
type Calibrator struct {
	engine      *Engine
	maintenance func() (on, known bool)
}

// NewCalibrator returns a calibrator. maintenance reports whether this router is under maintenance in the portal.
// known is false if the portal has not reported this recently.
func NewCalibrator(engine *Engine, maintenance func() (on, known bool)) *Calibrator {
	return &Calibrator{engine, maintenance}
}

// Calibrate measures the cost of encapsulations on this router. The router must be under maintenance in the
// portal. Lines that carry frames on this router influence the figures, because they share VPP's
// graph and threads with the measurement. If there are such lines, Calibrate measures only if
// withLines is true. No converge runs during the measurement.
//
// It returns *InServiceError, *calibration.CannotError, *vpp.RefusedError, *calibration.DisturbedError,
// *FrozenError, ErrNoVPP, ErrStopping or an error of the connection.
func (c *Calibrator) Calibrate(ctx context.Context, withLines bool) (*Calibrated, error) {
	e := c.engine
	ctx, release := e.untilStopped(ctx)
	defer release()
	if err := e.begin(); err != nil {
		return nil, err
	}
	defer e.busy.Unlock()
	if err := cmp.Or(e.frozen(), c.allowed(withLines)); err != nil {
		return nil, err
	}
	session, err := e.Session()
	if err != nil {
		return nil, err
	}
	found := &Calibrated{VPP: session.Info()}
	if found.VPP.Simulated() {
		return nil, &calibration.CannotError{Why: "this is a stand-in for VPP: it forwards no frames, and they cost it nothing"}
	}
	if e.options.FreeInterfaces != nil { // VPP aborts if it has too many interfaces
		snapshot, err := e.quickObservation(ctx, session, e.storedOrEmpty())
		if err != nil {
			return nil, err
		}
		if free, err := e.options.FreeInterfaces(snapshot.Boot.MS, len(snapshot.Interfaces)); err == nil && free < calibration.Interfaces {
			return nil, &calibration.CannotError{Why: fmt.Sprintf("VPP's stats segment has no room for %d more interfaces", calibration.Interfaces)}
		}
	}
	if found.Result, err = calibration.Measure(ctx, session, calibration.Usual); err != nil {
		return nil, e.orStopped(err)
	}
	found.AtMS = e.now().UnixMilli()
	e.log.Info("calibrated", "rounds", found.Rounds, "frames", found.Frames, "figures", len(found.Figures))
	return found, nil
}

func (c *Calibrator) allowed(withLines bool) error {
	on, known := c.maintenance()
	carrying := 0
	for _, end := range c.engine.storedOrEmpty().Present {
		if end.AdminUp && !end.Testing {
			carrying++
		}
	}
	switch {
	case !known:
		return &InServiceError{"whether this router is under maintenance is not known: the portal has not reported it recently"}
	case !on:
		return &InServiceError{"the portal does not have this router under maintenance: begin it there first"}
	case carrying > 0 && !withLines:
		return &InServiceError{fmt.Sprintf("lines carry frames here, at %d of their ends, and would share VPP with the calibration: their frames would come later, "+
			"by up to a millisecond, and some may be lost; drain the router first, or calibrate with -with-lines", carrying)}
	}
	return nil
}
