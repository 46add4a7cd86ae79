// Package converge brings VPP to the held intent: observe, plan, journal, apply, read back. One at a time.
package converge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"longline.dev/agent/internal/apply"
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

// ErrNoVPP says that VPP is not connected.
var ErrNoVPP = errors.New("converge: VPP is not connected")

// ErrSetAside says that an intent was held that could not be read.
var ErrSetAside = errors.New("converge: the intent that was held could not be read and is set aside; nothing is changed before the portal sends one")

// ErrStopping says that the agent ends and begins nothing new.
var ErrStopping = errors.New("converge: the agent is stopping; nothing was changed")

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
	journal *ownership.JournalFile
	log     *slog.Logger
	now     func() time.Time

	tracing sync.Mutex // VPP has one tracer

	// Repair says what is done about drift; set it before Serve.
	Repair Repair
	// FreeInterfaces is for how many interfaces more than the live ones the VPP started at bootMS has room; nil when
	// that is not to be asked. Set it before Serve.
	FreeInterfaces func(bootMS int64, live int) (int, error)
	// Epoch is that of the stats segment of the VPP started at bootMS (statseg.ReopeningSegment); nil when that is not
	// to be asked. Set it before Serve.
	Epoch func(bootMS int64) (int64, error)
	// TunnelCounters reads what the tunnel with this index and name has counted in the VPP started at bootMS
	// (statseg.ReopeningSegment); set it before Serve.
	TunnelCounters func(bootMS int64, index uint32, name string) (statseg.TunnelCounters, error)
	// SetAside are the files of the agent that could not be used and stand aside; nil when that is not to be told. Set
	// it before Serve.
	SetAside func() []durable.SetAsideFile
	// CLISocket is where VPP's command line answers, for pings; set it before Serve.
	CLISocket string
	// Maintenance is whether the portal has this router under maintenance, as far as it said so lately; nil without a
	// portal. Set it before Serve.
	Maintenance func() (on, known bool)

	// Frozen says whether VPP is left alone; set it before Serve.
	Frozen *freeze.File
	// freezeWaits is since when a freeze waits for the tests that are under way; busy guards it.
	freezeWaits map[freezeWait]time.Time

	// NeverWatch has no path watched, whatever the intent wants; set it before Serve.
	NeverWatch bool
	// Adoption lets the portal have ends made of what others made; set it before Serve.
	Adoption bool
	// PortMTUs gives what is made for a line the L3 MTU of its port (intent.Intent); set it before Serve.
	PortMTUs bool

	// FullObservation is for how long quick looks are enough before all of it is read again; set it before Serve. With
	// zero every look is a full one.
	FullObservation time.Duration

	// stopping ends with ErrStopping as its cause once no new work may begin.
	stopping context.Context
	stop     context.CancelCauseFunc

	busy      sync.Mutex // held while VPP is changed or the intent is replaced; begin locks it
	settled   settled    // with busy
	lastClean cleanPlan  // with busy
	backoff   backoff    // with busy
	contests  contests   // with busy
	// unfinished is true after a converge that did not get to its end, for example because the disk took no
	// journal: until one does, no difference is drift, not even under Hold. With busy.
	unfinished bool

	mu               sync.Mutex
	session          Session
	refused          error // why there is no session, if that is more than that VPP is away
	absent           bool
	metVPP           bool // a VPP was connected since the agent began
	seen             seen
	tested           map[intent.Key]time.Time // when an end was last held to be tested, see TestedSince
	made             map[uint32]int64         // by interface: the look after which it was made here, in this run of VPP
	run              ownership.Boot           // of the VPP that was last connected
	applied          *Applied
	statistics       Statistics
	changed          chan struct{}
	unreported       map[intent.Key][]plan.Drift // what others changed and was repaired since the last report
	rebuilds         map[uint32]string           // what Rebuild requested: names by index
	rebuildRequested chan struct{}
	// events are the interfaces that VPP's events have named and that were not read since; eventsLost is true when VPP may
	// have sent events that are not among them.
	events     map[uint32]bool
	eventsLost bool
	// eventsWaiting reports whether events have come that are not yet among events; Serve sets it before anything is read.
	eventsWaiting func() bool

	paths        *pathwatch.Tracker
	pathsChanged chan struct{}
}

// Applied is the last generation that was carried out in the VPP now connected, whatever became of
// single ends.
type Applied struct {
	Generation int64
	AtMS       int64
}

// New makes an engine without a connection.
func New(store *intent.Store, journal *ownership.JournalFile, log *slog.Logger, now func() time.Time) *Engine {
	stopping, stop := context.WithCancelCause(context.Background())
	return &Engine{
		stopping: stopping, stop: stop,
		store: store, journal: journal, log: log, now: now, changed: make(chan struct{}, 1), rebuildRequested: make(chan struct{}, 1),
		backoff: make(backoff), contests: make(contests), made: make(map[uint32]int64), tested: make(map[intent.Key]time.Time),
		Frozen: freeze.NoFile(now),
		paths:  pathwatch.NewTracker(pathwatch.NoFile(), now), pathsChanged: make(chan struct{}, 1),
	}
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
	Held       *intent.Intent
	SHA256     string
	Applied    *Applied
	VPP        *vpp.Info // nil when not connected
	Refused    error     // why VPP is not used although it is there (*vpp.OtherAgentError, vpp.ErrHangs); nil for no such reason
	NeverWatch bool
	Adoption   bool // lines of others may be taken over
	Freeze     *freeze.Freeze
	Absent     bool // no VPP listens: nothing is forwarded, where away may only mean that it does not answer
	Statistics Statistics
	// Look is the number of the last look at VPP, or of the moment at which VPP was found to be away. What has a
	// smaller number was seen earlier.
	Look int64
	// SetAside are the files of the agent that could not be used, until somebody removes them.
	SetAside []durable.SetAsideFile
	Paths    []pathwatch.Watched // sorted
}

// Hangs is true when VPP takes connections and answers nothing.
func (s Status) Hangs() bool { return errors.Is(s.Refused, vpp.ErrHangs) }

// Status is a copy.
func (e *Engine) Status() Status {
	s := Status{NeverWatch: e.NeverWatch, Adoption: e.Adoption, Freeze: e.Frozen.Held(), Paths: e.paths.Paths()}
	s.Held, s.SHA256 = e.store.Held()
	if e.SetAside != nil {
		s.SetAside = e.SetAside()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s.Applied, s.Refused, s.Absent, s.Statistics, s.Look = e.applied, e.refused, e.absent, e.statistics.copied(), e.seen.look
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
		return cmp.Or(s.Refused, ErrNoVPP)
	case s.Held == nil && e.store.SetAside() != nil:
		return ErrSetAside
	case s.Held != nil && (s.Applied == nil || s.Applied.Generation != s.Held.Generation):
		return fmt.Errorf("converge: generation %d is held and not yet applied", s.Held.Generation)
	}
	return nil
}

// Session is the connection to VPP. Error: ErrNoVPP, vpp.ErrHangs or *vpp.OtherAgentError.
func (e *Engine) Session() (Session, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.session == nil || e.session.Err() != nil {
		return nil, cmp.Or(e.refused, ErrNoVPP)
	}
	return e.session, nil
}

// Attach makes session the connection, nil for none. What was applied before is not known to be there.
func (e *Engine) Attach(session Session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.session, e.applied, e.seen, e.rebuilds = session, nil, seen{look: e.nextLook()}, nil
	e.events, e.eventsLost = nil, false
	if session != nil && (boot(session).MS == 0 || boot(session) != e.run) {
		e.run, e.made = boot(session), make(map[uint32]int64)
	}
	e.metVPP = e.metVPP || session != nil
	e.paths.Forget()
}

// Refused hears why VPP could not be used; nil when it could.
func (e *Engine) Refused(err error) {
	absent, hangs := vpp.IsAbsent(err), errors.Is(err, vpp.ErrHangs)
	var other *vpp.OtherAgentError
	if !errors.As(err, &other) && !hangs {
		err = nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	absent = absent && e.metVPP // a socket that never was there may only be looked for in the wrong place
	if absent != e.absent || hangs != errors.Is(e.refused, vpp.ErrHangs) {
		e.notify()
	}
	e.refused, e.absent = err, absent
}

func boot(session Session) ownership.Boot {
	info := session.Info()
	return ownership.Boot{PID: info.PID, MS: info.BootMS}
}

// begin locks the engine for one piece of work. Error: ErrStopping, and then the engine is not locked.
func (e *Engine) begin() error {
	e.busy.Lock()
	if err := e.stopped(); err != nil {
		e.busy.Unlock()
		return err
	}
	return nil
}

// stopped returns ErrStopping after FinishWork was called, else nil.
func (e *Engine) stopped() error { return context.Cause(e.stopping) }

// orStopped returns ErrStopping instead of an error that FinishWork caused by ending a context.
func (e *Engine) orStopped(err error) error {
	if errors.Is(err, context.Canceled) {
		return cmp.Or(e.stopped(), err)
	}
	return err
}

// untilStopped returns a context that ends with ctx, or with the cause ErrStopping when FinishWork is called. It is for
// work that clears up after itself wherever it is interrupted.
func (e *Engine) untilStopped(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	unlink := context.AfterFunc(e.stopping, func() { cancel(ErrStopping) })
	return ctx, func() { unlink(); cancel(nil) }
}

// FinishWork has the engine begin nothing new, and returns when the work that is running has ended. A converge runs to its
// end, because lines carry nothing between its first change and its last. A calibration and a trace end early and clear
// up. The connection to VPP has to stay until FinishWork returns. Error: that of ctx, if the work took longer.
func (e *Engine) FinishWork(ctx context.Context) error {
	e.stop(ErrStopping)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		e.tracing.Lock()
		defer e.tracing.Unlock()
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

// Put accepts an intent and converges. Errors are those of intent.Store.Accept; a VPP that is away is none:
// then the intent is held. The generation that is held already asks for another attempt at everything; a
// new one leaves alone what VPP refused lately and the document did not change, and trusts what was seen
// lately of what nobody can change in place. While the router is frozen it is refused, with
// *FrozenError, and afterwards, until looked is the id of that freeze: somebody has looked what it left. Error also:
// ErrStopping, and then the intent is not held.
func (e *Engine) Put(ctx context.Context, in *intent.Intent, looked string) (*Outcome, error) {
	if err := e.begin(); err != nil {
		return nil, err
	}
	defer e.busy.Unlock()
	if err := e.frozenFor(looked); err != nil {
		return nil, err
	}
	held, _ := e.store.Held()
	again := held != nil && held.Generation == in.Generation
	look, before, withheld, withhold := observeFunc(e.quickObservation), held, e.backoff.withheld(in, e.now()), e.contested
	if again {
		look, before, withheld, withhold = e.fullObservation, nil, nil, nil
	} else if e.unfinished || held != nil && len(differing(held, in)) == 0 {
		before = nil // a new number for the same content asks to look again
	}
	e.noteTested(held, in)
	defer e.noteTested(held, in)
	early := e.planEarly(ctx, look, in, before, withheld, withhold)
	if err := e.store.Accept(in); err != nil {
		early.cancel()
		<-early.done // or what it sees would replace what is seen later
		return nil, err
	}
	if err := e.Frozen.Forget(); err != nil {
		e.log.Error("the freeze that somebody has looked at stays, for the disk does not take it", "error", err)
	}
	if again {
		clear(e.backoff)
	}
	outcome := e.convergeLocked(ctx, in, held, withheld, early)
	if again || held == nil || !pathwatch.Of(held).Equal(pathwatch.Of(in)) {
		e.keepPathsWatched(ctx, nil)
	}
	return outcome, nil
}

// Converge brings VPP to the held intent, including what VPP refused lately. It returns nil when no intent is held, when
// VPP is left alone, or when the agent is stopping.
func (e *Engine) Converge(ctx context.Context) *Outcome {
	if e.begin() != nil {
		return nil
	}
	defer e.busy.Unlock()
	held, _ := e.store.Held()
	if held == nil || e.leftAlone(ctx, held) {
		return nil
	}
	outcome := e.convergeLocked(ctx, held, nil, nil, e.planEarly(ctx, e.fullObservation, held, nil, nil, nil))
	e.keepPathsWatched(ctx, nil)
	return outcome
}

// Plan compares VPP with an intent and changes nothing: its plan is what Put would do with that intent now. Error:
// ErrNoVPP, ErrStopping or that of the connection.
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
	if held, _ := e.store.Held(); held == nil || held.Generation != in.Generation {
		withheld = e.backoff.withheld(in, e.now())
	}
	return e.diff(in, snapshot, e.journal.Of(snapshot.Boot), withheld), snapshot, nil
}

// convergeLocked carries on when the one who asked goes away: half of a plan is worse than all of it. before is the
// intent that was held when what is now to be done came about, nil when drift is not to be looked for.
func (e *Engine) convergeLocked(ctx context.Context, in, before *intent.Intent, withheld map[intent.Key]*plan.Reason, early *earlyPlan) *Outcome {
	started := e.now()
	outcome, writes, err := e.round(context.WithoutCancel(ctx), in, before, withheld, early)
	if err != nil {
		e.log.Error("converge did not finish", "generation", in.Generation, "error", err)
		e.remember(early.session, nil, extentReadBack)
		outcome = unavailable(in, err)
	}
	outcome.Look, _ = e.lastSeen()
	e.unfinished = !outcome.Applied
	e.settled.note(outcome, withheld)
	e.backoff.note(in, outcome, withheld, e.now())
	e.mu.Lock()
	e.statistics.Converges++
	e.statistics.Writes += uint64(writes)
	e.statistics.LastDuration = e.now().Sub(started)
	e.statistics.Durations.add(e.statistics.LastDuration)
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
