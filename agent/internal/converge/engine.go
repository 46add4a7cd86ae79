// Package converge brings VPP to the state of the stored intent. A converge has these steps: observe, plan,
// write the journal, apply, and read back. Only one converge runs at a time.
package converge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"longline.dev/agent/internal/durable"
	"longline.dev/agent/internal/freeze"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/pathwatch"
	"longline.dev/agent/internal/plan"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
)

// ErrNoVPP reports that VPP is not connected.
var ErrNoVPP = errors.New("converge: VPP is not connected")

// ErrSetAside reports that the stored intent could not be read.
var ErrSetAside = errors.New("converge: the stored intent could not be read and is set aside; nothing is changed before the portal sends one")

// ErrStopping reports that the agent is stopping and starts no new work.
var ErrStopping = errors.New("converge: the agent is stopping; nothing was changed")

// Session has the methods of a connection to VPP that the engine needs.
type Session interface {
	observe.Session
	Err() error
}

var _ Session = (*vpp.Session)(nil)

// Engine has the stored intent and the connection, and runs one converge at a time.
type Engine struct {
	store   *intent.Store
	journal *ownership.JournalFile
	log     *slog.Logger
	now     func() time.Time

	options Options
	// freezeWaits maps each activation test that delays a freeze to the time when this delay began. busy guards
	// it.
	freezeWaits map[freezeWait]time.Time
	// interruptible is locked for reading by work that FinishWork interrupts. Lock it before busy.
	interruptible sync.RWMutex

	// stopping is cancelled with the cause ErrStopping when no new work may start.
	stopping context.Context
	stop     context.CancelCauseFunc

	busy      sync.Mutex // locked while VPP is changed or the intent is replaced; begin locks it
	settled   settled    // guarded by busy
	lastClean cleanPlan  // guarded by busy
	backoff   backoff    // guarded by busy
	contests  contests   // guarded by busy
	// unfinished is set after a converge that did not finish, for example because the journal could not be
	// written to disk. Until a converge finishes, differences do not count as drift, and are repaired even under
	// ReportOnly. busy guards unfinished.
	unfinished bool

	mu               sync.Mutex
	session          Session
	refused          error // why a reachable VPP is not used; nil if VPP is just not connected
	absent           bool
	metVPP           bool // a VPP has been connected since the agent started
	observed         observed
	tested           map[intent.Key]time.Time // when each end was last known to be under test, see TestedSince
	made             map[uint32]int64         // number of the last observation before the agent created an interface, by its index; for this run of VPP
	run              ownership.Boot           // run of the VPP that was connected last
	applied          *Applied
	statistics       Statistics
	changed          chan struct{}
	unreported       map[intent.Key][]plan.Drift // drift that was repaired since the last report
	rebuilds         map[uint32]string           // requests of Rebuild: names by index
	rebuildRequested chan struct{}
	// events contains the indices of the interfaces that VPP's events have named and that have not been read
	// since. eventsLost is set if events may have been lost.
	events     map[uint32]bool
	eventsLost bool
	// eventsWaiting reports whether events have arrived that are not in events yet. Serve sets it before
	// the first read.
	eventsWaiting func() bool
}

// Options of an engine. The zero value is an engine without limits, statistics and watched paths.
type Options struct {
	// Repair is the policy for drift.
	Repair Repair
	// FreeInterfaces returns how many interfaces can be created in the VPP that started at bootMS (Unix time in
	// milliseconds). live is the number of existing interfaces. If FreeInterfaces is nil, the engine does not
	// check this limit.
	FreeInterfaces func(bootMS int64, live int) (int, error)
	// Epoch returns the epoch of the stats segment of the VPP that started at bootMS (statseg.ReopeningSegment).
	// If Epoch is nil, the engine does not use epochs.
	Epoch func(bootMS int64) (int64, error)
	// TunnelCounters reads the counters of the tunnel with this index and name in the VPP that started at
	// bootMS (statseg.ReopeningSegment).
	TunnelCounters func(bootMS int64, index uint32, name string) (statseg.TunnelCounters, error)
	// SetAside returns the files of the agent that could not be used and were set aside. If SetAside is nil, the
	// engine does not report such files.
	SetAside func() []durable.SetAsideFile
	// CLISocket is the socket of VPP's command line, for pings.
	CLISocket string
	// Frozen is the freeze of this router. If it is nil, freezes are not stored.
	Frozen *freeze.File
	// Paths watches the paths of the intent. If it is nil, states of paths are not stored.
	Paths *PathWatcher
	// Adoption allows the portal to adopt foreign interfaces as ends.
	Adoption bool
	// PortMTUs gives the interfaces of a line the L3 MTU of the line's port (see intent.Intent).
	PortMTUs bool
	// FullObservation is the longest time between two full observations. If it is zero, every observation is
	// full.
	FullObservation time.Duration
}

// Applied is the last generation that was applied in the VPP that is connected now, regardless of the
// results of single ends.
type Applied struct {
	Generation int64
	AtMS       int64
}

// New returns an engine without a connection.
func New(store *intent.Store, journal *ownership.JournalFile, log *slog.Logger, now func() time.Time, options Options) *Engine {
	if options.Frozen == nil {
		options.Frozen = freeze.NoFile(now)
	}
	if options.Paths == nil {
		options.Paths = NewPathWatcher(pathwatch.NoFile(), journal, log, now, false)
	}
	stopping, stop := context.WithCancelCause(context.Background())
	return &Engine{
		stopping: stopping, stop: stop,
		store: store, journal: journal, log: log, now: now, changed: make(chan struct{}, 1), rebuildRequested: make(chan struct{}, 1),
		backoff: make(backoff), contests: make(contests), made: make(map[uint32]int64), tested: make(map[intent.Key]time.Time),
		options: options,
	}
}

// Parts has the parts of the agent that package report reads.
type Parts struct {
	*Engine
	*PathWatcher
	*Tracer
}

// Parts returns the engine with its path watcher and a tracer.
func (e *Engine) Parts() Parts { return Parts{e, e.options.Paths, &Tracer{engine: e}} }

// Changed returns a channel that receives a token after a possible change in VPP.
func (e *Engine) Changed() <-chan struct{} { return e.changed }

func (e *Engine) notify() {
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// Status contains the engine's knowledge of itself and of VPP. The engine does not query VPP for it.
type Status struct {
	Intent     *intent.Intent
	SHA256     string
	Applied    *Applied
	VPP        *vpp.Info // nil if not connected
	Refused    error     // why a reachable VPP is not used (*vpp.OtherAgentError, vpp.ErrHangs), or nil
	NeverWatch bool
	Adoption   bool // foreign lines may be adopted
	Freeze     *freeze.Freeze
	Absent     bool // no VPP listens on the socket, so no frame is forwarded; a VPP that accepts connections and does not reply is not absent
	Statistics Statistics
	// ObservationNumber is the number of the last observation of VPP. If the connection to VPP was
	// made or lost after that observation, it is the number of this change. Later observations have
	// larger numbers.
	ObservationNumber int64
	// SetAside lists the agent's files that could not be used. A file is listed until an operator
	// removes it.
	SetAside []durable.SetAsideFile
	Paths    []pathwatch.Watched // sorted
}

// Hangs reports whether VPP accepts connections but does not reply.
func (s Status) Hangs() bool { return errors.Is(s.Refused, vpp.ErrHangs) }

// Status returns a copy of the engine's status.
func (e *Engine) Status() Status {
	s := Status{NeverWatch: e.options.Paths.never, Adoption: e.options.Adoption, Freeze: e.options.Frozen.Current(), Paths: e.options.Paths.Paths()}
	s.Intent, s.SHA256 = e.store.Current()
	if e.options.SetAside != nil {
		s.SetAside = e.options.SetAside()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s.Applied, s.Refused, s.Absent, s.Statistics, s.ObservationNumber = e.applied, e.refused, e.absent, e.statistics.copied(), e.observed.number
	if e.session != nil {
		s.VPP = new(e.session.Info())
	}
	return s
}

// Ready returns nil if VPP is connected and the stored intent has been applied there.
func (e *Engine) Ready() error {
	switch s := e.Status(); {
	case s.VPP == nil:
		return cmp.Or(s.Refused, ErrNoVPP)
	case s.Intent == nil && e.store.SetAside() != nil:
		return ErrSetAside
	case s.Intent != nil && (s.Applied == nil || s.Applied.Generation != s.Intent.Generation):
		return fmt.Errorf("converge: generation %d is stored and not yet applied", s.Intent.Generation)
	}
	return nil
}

// Session returns the connection to VPP. If there is no connection, it returns ErrNoVPP, vpp.ErrHangs or
// *vpp.OtherAgentError.
func (e *Engine) Session() (Session, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.session == nil || e.session.Err() != nil {
		return nil, cmp.Or(e.refused, ErrNoVPP)
	}
	return e.session, nil
}

// Attach sets the connection to VPP, or removes it if session is nil. In both cases the engine forgets the
// last observation and the applied generation, because VPP may have lost its state.
func (e *Engine) Attach(session Session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.session, e.applied, e.observed, e.rebuilds = session, nil, observed{number: e.nextNumber()}, nil
	e.events, e.eventsLost = nil, false
	if session != nil && (boot(session).MS == 0 || boot(session) != e.run) {
		e.run, e.made = boot(session), make(map[uint32]int64)
	}
	e.metVPP = e.metVPP || session != nil
	e.options.Paths.tracker.Forget()
}

// Refused records the reason why VPP could not be used. A nil error means that VPP could be used.
func (e *Engine) Refused(err error) {
	absent, hangs := vpp.IsAbsent(err), errors.Is(err, vpp.ErrHangs)
	if _, other := errors.AsType[*vpp.OtherAgentError](err); !other && !hangs {
		err = nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	absent = absent && e.metVPP // if the agent has never met a VPP, the path of the socket may be wrong
	if absent != e.absent || hangs != errors.Is(e.refused, vpp.ErrHangs) {
		e.notify()
	}
	e.refused, e.absent = err, absent
}

func boot(session Session) ownership.Boot {
	info := session.Info()
	return ownership.Boot{PID: info.PID, MS: info.BootMS}
}

// begin locks the engine for one piece of work. If the agent is stopping, it returns ErrStopping
// and does not lock the engine.
func (e *Engine) begin() error {
	e.busy.Lock()
	if err := e.stopped(); err != nil {
		e.busy.Unlock()
		return err
	}
	return nil
}

// stopped returns ErrStopping after a call of FinishWork, otherwise nil.
func (e *Engine) stopped() error { return context.Cause(e.stopping) }

// orStopped returns ErrStopping if FinishWork caused err by cancelling a context, otherwise err.
func (e *Engine) orStopped(err error) error {
	if errors.Is(err, context.Canceled) {
		return cmp.Or(e.stopped(), err)
	}
	return err
}

// untilStopped returns a context that ends with ctx, or with the cause ErrStopping when FinishWork is called. It
// is for work that cleans up whenever it is interrupted. FinishWork waits until the work calls release.
func (e *Engine) untilStopped(ctx context.Context) (working context.Context, release func()) {
	e.interruptible.RLock()
	working, cancel := context.WithCancelCause(ctx)
	unlink := context.AfterFunc(e.stopping, func() { cancel(ErrStopping) })
	return working, func() { unlink(); cancel(nil); e.interruptible.RUnlock() }
}

// FinishWork prevents new work, and returns when the running work has ended. A converge runs to its end,
// because lines may carry no frames between its first and its last change. A calibration and a trace end
// early and clean up. The connection to VPP must exist until FinishWork returns. If ctx ends before
// the work, FinishWork returns the error of ctx.
func (e *Engine) FinishWork(ctx context.Context) error {
	e.stop(ErrStopping)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		e.interruptible.Lock()
		defer e.interruptible.Unlock()
		e.busy.Lock()
		defer e.busy.Unlock()
	}()
	select {
	case <-finished:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("converge: the work that is running has not ended: %w", ctx.Err())
	}
}

// Put stores an intent and converges. If VPP is not connected, Put only stores the intent and returns no
// error.
//
// If the intent has the stored generation, Put tries all ends again. If the intent has a new
// generation, Put skips the ends that VPP refused recently and that have not changed since the
// refusal. Put then also relies on recent observations for properties that no client can change in
// place.
//
// While the router is frozen, Put returns *FrozenError. After the freeze, Put also returns
// *FrozenError, unless reviewed is the id of that freeze. With this id, the portal confirms that an
// operator has reviewed the differences. Put also returns errors of intent.Store.Accept, and
// ErrStopping. If Put returns an error, the intent is not stored.
func (e *Engine) Put(ctx context.Context, in *intent.Intent, reviewed string) (*Outcome, error) {
	if err := e.begin(); err != nil {
		return nil, err
	}
	defer e.busy.Unlock()
	if err := e.frozenFor(reviewed); err != nil {
		return nil, err
	}
	stored, _ := e.store.Current()
	again := stored != nil && stored.Generation == in.Generation
	read, before, withheld, withhold := observeFunc(e.quickObservation), stored, e.backoff.withheld(in, e.now()), e.contested
	if again {
		read, before, withheld, withhold = e.fullObservation, nil, nil, nil
	} else if e.unfinished || stored != nil && len(differing(stored, in)) == 0 {
		before = nil // a new generation with the same content requests another observation
	}
	e.noteTested(stored, in)
	defer e.noteTested(stored, in)
	early := e.planEarly(ctx, read, in, before, withheld, withhold)
	if err := e.store.Accept(in); err != nil {
		early.cancel()
		<-early.done // otherwise its observation would replace a later one
		return nil, err
	}
	if err := e.options.Frozen.Forget(); err != nil {
		e.log.Error("the freeze that an operator has reviewed cannot be removed from disk", "error", err)
	}
	if again {
		clear(e.backoff)
	}
	outcome := e.convergeLocked(ctx, in, stored, withheld, early)
	if again || stored == nil || !pathwatch.Of(stored).Equal(pathwatch.Of(in)) {
		e.keepPathsWatched(ctx, nil)
	}
	return outcome, nil
}

// Converge brings VPP to the state of the stored intent. It also tries the ends that VPP refused
// recently. It returns nil if no intent is stored, if a freeze forbids changes, or if the agent is
// stopping.
func (e *Engine) Converge(ctx context.Context) *Outcome {
	if e.begin() != nil {
		return nil
	}
	defer e.busy.Unlock()
	stored, _ := e.store.Current()
	if stored == nil || e.mustNotChange(ctx, stored) {
		return nil
	}
	outcome := e.convergeLocked(ctx, stored, nil, nil, e.planEarly(ctx, e.fullObservation, stored, nil, nil, nil))
	e.keepPathsWatched(ctx, nil)
	return outcome
}

// Plan compares VPP with an intent and changes nothing. The returned plan contains the operations that Put
// would carry out for that intent now. Plan returns ErrNoVPP, ErrStopping or an error of the connection.
func (e *Engine) Plan(ctx context.Context, in *intent.Intent) (*plan.Plan, *observe.Snapshot, error) {
	if err := e.begin(); err != nil {
		return nil, nil, err
	}
	defer e.busy.Unlock()
	session, err := e.Session()
	if err != nil {
		return nil, nil, err
	}
	snapshot, err := e.fullObservation(ctx, session, in)
	if err != nil {
		return nil, nil, err
	}
	var withheld map[intent.Key]*plan.Reason
	if stored, _ := e.store.Current(); stored == nil || stored.Generation != in.Generation {
		withheld = e.backoff.withheld(in, e.now())
	}
	return e.diff(in, snapshot, e.journal.Of(snapshot.Boot), withheld), snapshot, nil
}

// convergeLocked carries out the early plan and records the results. The caller holds the mutex busy. The end
// of ctx does not stop convergeLocked, because a half-applied plan is worse than a complete plan. before is
// the intent that was stored when the plan was made. If before is nil, convergeLocked does not detect drift.
func (e *Engine) convergeLocked(ctx context.Context, in, before *intent.Intent, withheld map[intent.Key]*plan.Reason, early *earlyPlan) *Outcome {
	started := e.now()
	outcome, writes, err := e.round(context.WithoutCancel(ctx), in, before, withheld, early)
	if err != nil {
		e.log.Error("converge did not finish", "generation", in.Generation, "error", err)
		e.remember(early.session, nil, extentReadBack)
		outcome = unavailable(in, err)
	}
	outcome.ObservationNumber, _ = e.lastObserved()
	e.unfinished = !outcome.Applied
	e.settled.note(outcome, withheld)
	e.backoff.note(in, outcome, withheld, e.now())
	e.mu.Lock()
	e.statistics.Converges++
	e.statistics.Writes += uint64(writes)
	e.statistics.Durations.add(e.now().Sub(started))
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
