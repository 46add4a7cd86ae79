package converge

import (
	"context"
	"maps"
	"slices"

	"go.fd.io/govpp/binapi/bfd"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/pathwatch"
)

// Paths are all paths that are watched, and how they stand.
func (e *Engine) Paths() []pathwatch.Watched { return e.paths.Paths() }

// PathsChanged gets a token when a path stands otherwise than before.
func (e *Engine) PathsChanged() <-chan struct{} { return e.pathsChanged }

func (e *Engine) notifyOfPaths() {
	select {
	case e.pathsChanged <- struct{}{}:
	default:
	}
}

// followPaths takes in what VPP tells of its BFD sessions, until ctx ends. It waits for nobody: a converge may take seconds.
func (e *Engine) followPaths(ctx context.Context, events <-chan *bfd.BfdUDPSessionEvent) {
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-events:
			path, state, multihop := pathwatch.EventOf(event)
			if !multihop {
				continue
			}
			news, err := e.paths.HandleEvent(path, state)
			if err != nil {
				e.log.Warn("after a restart of the agent this path may count as never heard", "path", path.String(), "error", err)
			}
			if news {
				e.log.Info("watched path", "path", path.String(), "bfd_state", state.String())
				e.notifyOfPaths()
			}
		}
	}
}

// RememberPaths has the engine know which paths have been up before; call it before Serve.
func (e *Engine) RememberPaths(heard *pathwatch.UpPathsFile) {
	e.paths = pathwatch.NewTracker(heard, e.now)
}

// readPaths notes how the sessions of the held intent stand, and changes none: of a VPP that has them already nothing else is to be
// reported before.
func (e *Engine) readPaths(ctx context.Context) {
	if e.begin() != nil {
		return
	}
	defer e.busy.Unlock()
	e.keepPathsWatched(ctx, func(intent.Path) bool { return false })
}

// untouchedPaths are those whose sessions a look at VPP may change: under Hold not those that the agent has made, which are left as
// somebody changed them.
func (e *Engine) untouchedPaths(path intent.Path) bool {
	if e.Repair != Hold {
		return true
	}
	session, err := e.Session()
	return err == nil && !slices.Contains(e.journal.Of(boot(session)).Sessions, path)
}

// keepPathsWatched brings the sessions of those paths that may be changed, nil for all, to what the held intent wants, and notes how
// all stand; with busy. What goes wrong here is no line's fault, and is tried again with the next look.
func (e *Engine) keepPathsWatched(ctx context.Context, may func(intent.Path) bool) {
	held, _ := e.store.Held()
	session, err := e.Session()
	if held == nil || err != nil { // without an intent nothing says that a session is not wanted any more
		return
	}
	ctx = context.WithoutCancel(ctx)
	wanted, journal := pathwatch.Of(held), e.journal.Of(boot(session))
	if e.NeverWatch {
		wanted = pathwatch.Wanted{}
	}
	if !pathwatch.Supported(session.Has) || len(wanted.Paths) == 0 && len(journal.Sessions) == 0 && len(e.paths.Paths()) == 0 {
		return
	}
	ours := make(map[intent.Path]bool)
	for _, path := range journal.Sessions {
		ours[path] = true
	}
	look, err := e.changeSessions(ctx, session, wanted, ours, may)
	if err != nil {
		e.log.Warn("paths are not watched as they should be", "error", err)
		return
	}
	changed, err := e.paths.Apply(*look)
	if err != nil {
		e.log.Warn("after a restart of the agent, paths may count as never heard", "error", err)
	}
	if changed {
		e.notifyOfPaths()
	}
}

func (e *Engine) changeSessions(
	ctx context.Context, session Session, wanted pathwatch.Wanted, ours map[intent.Path]bool, may func(intent.Path) bool,
) (*pathwatch.Observation, error) {
	look := &pathwatch.Observation{Mark: e.paths.Mark(), Wanted: wanted.Paths, Ours: ours}
	var err error
	if look.Sessions, err = pathwatch.Read(ctx, session); err != nil {
		return nil, err
	}
	astray, err := pathwatch.Misrouted(ctx, session, wanted, look.Sessions)
	if err != nil {
		return nil, err
	}
	look.Refused = astray
	ops := pathwatch.Plan(wanted.Without(astray), look.Sessions, ours)
	if may != nil {
		ops = slices.DeleteFunc(ops, func(op pathwatch.Op) bool { return !may(op.Path) })
	}
	if len(ops) == 0 {
		look.Exclude(astray)
		return look, nil
	}
	before := look.Sessions
	for _, op := range ops {
		if _, is := before[op.Path]; !is {
			ours[op.Path] = true // it may be made and nobody know, if the agent ends now
		}
	}
	if err := e.journalSessions(session, ours, e.journal.Claim); err != nil {
		return nil, err
	}
	if look.Refused, err = pathwatch.Run(ctx, countingSession{session, e}, ops); err != nil {
		return nil, err
	}
	look.Mark = e.paths.Mark()
	if look.Sessions, err = pathwatch.Read(ctx, session); err != nil {
		return nil, err
	}
	look.Created = make(map[intent.Path]bool)
	for _, op := range ops {
		_, was := before[op.Path]
		_, is := look.Sessions[op.Path]
		look.Created[op.Path] = is && !was
		if _, failed := look.Refused[op.Path]; !is || failed && !was { // one that VPP would not make is somebody else's
			delete(ours, op.Path)
		}
		e.log.Info("BFD session", "path", op.Path.String(), "message", op.Request.GetMessageName(), "refused", look.Refused[op.Path])
	}
	maps.Copy(look.Refused, astray)
	look.Exclude(astray)
	return look, e.journalSessions(session, ours, e.journal.Note)
}

func (e *Engine) journalSessions(session Session, ours map[intent.Path]bool, write func(ownership.Journal) error) error {
	journal := e.journal.Of(boot(session))
	journal.Sessions = slices.SortedFunc(maps.Keys(ours), intent.Path.Compare)
	return write(journal)
}
