package converge

import (
	"context"
	"maps"
	"sync"
	"time"

	"longline.dev/agent/internal/packettrace"
)

// ErrTracing reports that another trace is running.
var ErrTracing = notTesting("another trace is under way: only one at a time has VPP's tracer")

// Tracer captures packets with VPP's tracer. VPP has only one, so only one trace runs at a time.
type Tracer struct {
	engine  *Engine
	tracing sync.Mutex
}

// NewTracer returns a tracer for the engine's VPP.
func NewTracer(engine *Engine) *Tracer { return &Tracer{engine: engine} }

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
