// Package converge brings VPP to the held intent: observe, plan, journal, apply, read back. One at a time.
package converge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"longline.dev/agent/internal/apply"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/own"
	"longline.dev/agent/internal/plan"
	"longline.dev/agent/internal/vpp"
)

// ErrNoVPP says that VPP is not connected.
var ErrNoVPP = errors.New("converge: VPP is not connected")

// Session is what the engine needs of a connection to VPP.
type Session interface {
	observe.Session
	apply.Session
	Info() vpp.Info
	Err() error
}

var _ Session = (*vpp.Session)(nil)

// Engine holds the intent and the connection, and lets one converge run at a time.
type Engine struct {
	store   *intent.Store
	journal *own.JournalFile
	log     *slog.Logger
	now     func() time.Time

	busy sync.Mutex // held while VPP is changed or the intent is replaced

	mu      sync.Mutex
	session Session
	applied *Applied
	stuck   map[intent.Key]bool // ends that the last pass could not bring where they should be
	totals  Totals
	changed chan struct{}
}

// Applied is the last generation that was carried out in the VPP now connected, whatever became of
// single ends.
type Applied struct {
	Generation int64
	AtMS       int64
}

// Totals count since the start of the agent.
type Totals struct {
	Converges, Writes, Repairs uint64
	LastDuration               time.Duration
}

// New makes an engine without a connection.
func New(store *intent.Store, journal *own.JournalFile, log *slog.Logger, now func() time.Time) *Engine {
	return &Engine{store: store, journal: journal, log: log, now: now, changed: make(chan struct{}, 1)}
}

// Changed gets a token after something in VPP may have changed.
func (e *Engine) Changed() <-chan struct{} { return e.changed }

func (e *Engine) notify() {
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// Status is what the engine knows without asking VPP.
type Status struct {
	Held    *intent.Intent
	SHA256  string
	Applied *Applied
	VPP     *vpp.Info // nil when not connected
	Totals  Totals
}

// Status is a copy.
func (e *Engine) Status() Status {
	s := Status{}
	s.Held, s.SHA256 = e.store.Held()
	e.mu.Lock()
	defer e.mu.Unlock()
	s.Applied, s.Totals = e.applied, e.totals
	if e.session != nil {
		info := e.session.Info()
		s.VPP = &info
	}
	return s
}

// Ready is nil when VPP is connected and the held intent has been carried out there.
func (e *Engine) Ready() error {
	switch s := e.Status(); {
	case s.VPP == nil:
		return ErrNoVPP
	case s.Held != nil && (s.Applied == nil || s.Applied.Generation != s.Held.Generation):
		return fmt.Errorf("converge: generation %d is held and not yet applied", s.Held.Generation)
	}
	return nil
}

// Session is the connection to VPP. Error: ErrNoVPP.
func (e *Engine) Session() (Session, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.session == nil || e.session.Err() != nil {
		return nil, ErrNoVPP
	}
	return e.session, nil
}

// Attach makes session the connection, nil for none. What was applied before is not known to be there.
func (e *Engine) Attach(session Session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.session, e.applied = session, nil
}

func boot(session Session) own.Boot {
	info := session.Info()
	return own.Boot{PID: info.PID, MS: info.BootMS}
}

// Put accepts an intent and converges. Errors are those of intent.Store.Accept; a VPP that is away is none:
// then the intent is held.
func (e *Engine) Put(ctx context.Context, in *intent.Intent) (*Outcome, error) {
	e.busy.Lock()
	defer e.busy.Unlock()
	if err := e.store.Accept(in); err != nil {
		return nil, err
	}
	return e.convergeLocked(ctx, in), nil
}

// Converge brings VPP to the held intent; nil when none is held.
func (e *Engine) Converge(ctx context.Context) *Outcome {
	e.busy.Lock()
	defer e.busy.Unlock()
	held, _ := e.store.Held()
	if held == nil {
		return nil
	}
	return e.convergeLocked(ctx, held)
}

// Look compares VPP with an intent and changes nothing. Error: ErrNoVPP or that of the connection.
func (e *Engine) Look(ctx context.Context, in *intent.Intent) (*plan.Plan, *observe.Snapshot, error) {
	e.busy.Lock()
	defer e.busy.Unlock()
	session, err := e.Session()
	if err != nil {
		return nil, nil, err
	}
	snapshot, err := observe.Take(ctx, session, boot(session))
	if err != nil {
		return nil, nil, err
	}
	return plan.Diff(in, snapshot, e.journal.Of(snapshot.Boot)), snapshot, nil
}

// convergeLocked carries on when the one who asked goes away: half of a plan is worse than all of it.
func (e *Engine) convergeLocked(ctx context.Context, in *intent.Intent) *Outcome {
	ctx = context.WithoutCancel(ctx)
	started := e.now()
	outcome, writes, err := e.round(ctx, in)
	if err != nil {
		e.log.Error("converge did not finish", "generation", in.Generation, "error", err)
		outcome = unavailable(in, err)
	}
	e.mu.Lock()
	e.totals.Converges++
	e.totals.Writes += uint64(writes)
	e.totals.LastDuration = e.now().Sub(started)
	e.stuck = stuckEnds(outcome)
	if outcome.Applied {
		e.applied = &Applied{Generation: in.Generation, AtMS: e.now().UnixMilli()}
	}
	e.mu.Unlock()
	if writes > 0 {
		e.notify()
	}
	e.log.Info("converged", "generation", in.Generation, "applied", outcome.Applied, "writes", writes,
		"ends", outcome.counts(), "duration", e.now().Sub(started))
	return outcome
}

// round is one pass. Without anything to do it takes one snapshot and writes nothing; else it reads
// back what it did and plans again, and only an end with nothing left to do counts as verified.
func (e *Engine) round(ctx context.Context, in *intent.Intent) (*Outcome, int, error) {
	session, err := e.Session()
	if err != nil {
		return nil, 0, err
	}
	look := func(ctx context.Context) (*observe.Snapshot, error) { return observe.Take(ctx, session, boot(session)) }
	snapshot, err := look(ctx)
	if err != nil {
		return nil, 0, err
	}
	todo := plan.Diff(in, snapshot, e.journal.Of(snapshot.Boot))
	if err := e.claim(snapshot.Boot, todo.Standing, todo.Creations); err != nil {
		return nil, 0, err
	}
	if len(todo.Ops) == 0 {
		return judge(in, todo, nil), 0, nil
	}
	result, err := apply.Run(ctx, session, todo.Ops, look)
	if err != nil {
		return nil, result.Writes, err
	}
	if snapshot, err = look(ctx); err != nil {
		return nil, result.Writes, err
	}
	left := plan.Diff(in, snapshot, own.Journal{Boot: snapshot.Boot, Claims: append(todo.Standing, unfinished(todo.Creations, result)...)})
	if err := e.claim(snapshot.Boot, left.Standing, nil); err != nil {
		return nil, result.Writes, err
	}
	return judge(in, left, result.Failed), result.Writes, nil
}

func (e *Engine) claim(boot own.Boot, standing, creations []own.Claim) error {
	return e.journal.Write(own.Journal{Boot: boot, Claims: slices.Concat(standing, creations)})
}

// unfinished are the creations that VPP confirmed and whose tag it did not. What it refused to make is not
// the agent's, even if something with that key is there.
func unfinished(creations []own.Claim, result *apply.Result) []own.Claim {
	var left []own.Claim
	for _, c := range creations {
		role := plan.Access
		if c.Tunnel != nil {
			role = plan.Tunnel
		}
		if result.Untagged[plan.Made{End: c.Key(), Role: role}] {
			left = append(left, c)
		}
	}
	return left
}
