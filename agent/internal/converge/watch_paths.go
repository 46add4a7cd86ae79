package converge

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"go.fd.io/govpp/binapi/bfd"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/pathwatch"
)

// PathWatcher watches the paths between tunnel endpoints with BFD sessions in VPP.
type PathWatcher struct {
	tracker *pathwatch.Tracker
	changed chan struct{}
	journal *ownership.JournalFile
	log     *slog.Logger
	never   bool
}

// NewPathWatcher returns a watcher. upPaths is the record of paths that have been up before. never turns the
// monitoring off, regardless of the intent.
func NewPathWatcher(
	upPaths *pathwatch.UpPathsFile, journal *ownership.JournalFile, log *slog.Logger, now func() time.Time, never bool,
) *PathWatcher {
	return &PathWatcher{pathwatch.NewTracker(upPaths, now), make(chan struct{}, 1), journal, log, never}
}

// Paths returns the states of all monitored paths.
func (w *PathWatcher) Paths() []pathwatch.Watched { return w.tracker.Paths() }

// PathsChanged returns a channel that receives a token when the state of a path changes.
func (w *PathWatcher) PathsChanged() <-chan struct{} { return w.changed }

func (w *PathWatcher) notify() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// follow applies VPP's events of BFD sessions until ctx ends. It does not wait for a converge, which may take
// seconds.
func (w *PathWatcher) follow(ctx context.Context, events <-chan *bfd.BfdUDPSessionEvent) {
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-events:
			path, state, multihop := pathwatch.EventOf(event)
			if !multihop {
				continue
			}
			changed, err := w.tracker.HandleEvent(path, state)
			if err != nil {
				w.log.Warn("after a restart of the agent this path may count as never up", "path", path.String(), "error", err)
			}
			if changed {
				w.log.Info("watched path", "path", path.String(), "bfd_state", state.String())
				w.notify()
			}
		}
	}
}

// readPaths reads the states of the stored intent's BFD sessions and changes no session. So if VPP
// already has the sessions, the first report shows their states.
func (e *Engine) readPaths(ctx context.Context) {
	if e.begin() != nil {
		return
	}
	defer e.busy.Unlock()
	e.keepPathsWatched(ctx, func(intent.Path) bool { return false })
}

// untouchedPaths reports whether a check of drift may change the path's BFD session. Under ReportOnly, a check
// must not change the agent's existing sessions, because the change could undo a change by another client.
func (e *Engine) untouchedPaths(path intent.Path) bool {
	if e.options.Repair != ReportOnly {
		return true
	}
	session, err := e.Session()
	return err == nil && !slices.Contains(e.journal.Of(boot(session)).Sessions, path)
}

// keepPathsWatched brings the BFD sessions to the state that the stored intent requires (see PathWatcher.keep).
// The caller holds the mutex busy.
func (e *Engine) keepPathsWatched(ctx context.Context, may func(intent.Path) bool) {
	stored, _ := e.store.Current()
	session, err := e.Session()
	if stored == nil || err != nil { // without an intent it is unknown which sessions are unwanted
		return
	}
	e.options.Paths.keep(context.WithoutCancel(ctx), countingSession{session, e}, pathwatch.Of(stored), may)
}

// keep brings the BFD sessions to the wanted state, and records the states of all paths. It changes only the
// sessions of those paths for which the call may(path) returns true. If may is nil, keep may change all
// sessions. keep logs errors, because they do not affect lines. The next observation tries again.
func (w *PathWatcher) keep(ctx context.Context, session countingSession, wanted pathwatch.Wanted, may func(intent.Path) bool) {
	journal := w.journal.Of(boot(session))
	if w.never {
		wanted = pathwatch.Wanted{}
	}
	if !pathwatch.Supported(session.Has) || len(wanted.Paths) == 0 && len(journal.Sessions) == 0 && len(w.Paths()) == 0 {
		return
	}
	ours := make(map[intent.Path]bool)
	for _, path := range journal.Sessions {
		ours[path] = true
	}
	observed, err := w.changeSessions(ctx, session, wanted, ours, may)
	if err != nil {
		w.log.Warn("paths are not watched as they should be", "error", err)
		return
	}
	changed, err := w.tracker.Apply(*observed)
	if err != nil {
		w.log.Warn("after a restart of the agent, paths may count as never up", "error", err)
	}
	if changed {
		w.notify()
	}
}

func (w *PathWatcher) changeSessions(
	ctx context.Context, session countingSession, wanted pathwatch.Wanted, ours map[intent.Path]bool, may func(intent.Path) bool,
) (*pathwatch.Observation, error) {
	observed := &pathwatch.Observation{Mark: w.tracker.Mark(), Wanted: wanted.Paths, Ours: ours}
	var err error
	if observed.Sessions, err = pathwatch.Read(ctx, session.Session); err != nil {
		return nil, err
	}
	misrouted, err := pathwatch.Misrouted(ctx, session.Session, wanted, observed.Sessions)
	if err != nil {
		return nil, err
	}
	observed.Refused = misrouted
	ops := pathwatch.Plan(wanted.Without(misrouted), observed.Sessions, ours)
	if may != nil {
		ops = slices.DeleteFunc(ops, func(op pathwatch.Op) bool { return !may(op.Path) })
	}
	if len(ops) == 0 {
		observed.Exclude(misrouted)
		return observed, nil
	}
	before := observed.Sessions
	for _, op := range ops {
		if _, is := before[op.Path]; !is {
			ours[op.Path] = true // if the agent is killed before VPP's reply, the session may exist
		}
	}
	if err := w.journalSessions(session, ours, w.journal.Claim); err != nil {
		return nil, err
	}
	if observed.Refused, err = pathwatch.Run(ctx, session, ops); err != nil {
		return nil, err
	}
	observed.Mark = w.tracker.Mark()
	if observed.Sessions, err = pathwatch.Read(ctx, session.Session); err != nil {
		return nil, err
	}
	observed.Created = make(map[intent.Path]bool)
	for _, op := range ops {
		_, was := before[op.Path]
		_, is := observed.Sessions[op.Path]
		observed.Created[op.Path] = is && !was
		if _, failed := observed.Refused[op.Path]; !is || failed && !was { // if VPP refused to create the session, an existing session belongs to another client
			delete(ours, op.Path)
		}
		w.log.Info("BFD session", "path", op.Path.String(), "message", op.Request.GetMessageName(), "refused", observed.Refused[op.Path])
	}
	maps.Copy(observed.Refused, misrouted)
	observed.Exclude(misrouted)
	return observed, w.journalSessions(session, ours, w.journal.Note)
}

func (w *PathWatcher) journalSessions(session Session, ours map[intent.Path]bool, write func(ownership.Journal) error) error {
	journal := w.journal.Of(boot(session))
	journal.Sessions = slices.SortedFunc(maps.Keys(ours), intent.Path.Compare)
	return write(journal)
}
