package pathwatch

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.fd.io/govpp/binapi/bfd"

	"longline.dev/agent/internal/durable"
	"longline.dev/agent/internal/intent"
)

// State is the state of a path, in the terms of docs/reference/agent-reports.md.
type State string

const (
	// Up means that both routers receive each other's packets.
	Up State = "up"
	// Down means that the path has been up, and that now a router no longer receives packets.
	Down State = "down"
	// Starting means that the session is not up yet and is younger than the time in patience.
	Starting State = "starting"
	// Unheard means that the session is not new and has never been up. A possible reason is that the far
	// router has no session, or that a filter blocks UDP port 4784. The state does not show whether tunnels
	// work.
	Unheard State = "unheard"
	// Shut means that a session of another client is administratively down.
	Shut State = "shut"
	// Refusal means that there is no session, because VPP refused to create it, or because BFD packets would
	// take another route than the tunnels (Misrouted).
	Refusal State = "refused"
)

// States lists all states.
var States = []State{Up, Down, Starting, Unheard, Shut, Refusal}

// patience is the time that a new session may take to come up. It is long because VPP sends only one packet a
// second until a session is up, and because the far router may create its session later.
const patience = 10 * time.Second

// Watched is the state of a path.
type Watched struct {
	intent.Path
	State   State
	Since   time.Time
	Foreign bool   // the session belongs to another client, and the agent only reads it
	Detail  string // the reason if State is Refusal
}

// Tracker has the states of the watched paths. It is safe for concurrent use.
type Tracker struct {
	now     func() time.Time
	upPaths *UpPathsFile

	mu     sync.Mutex
	paths  map[intent.Path]*entry
	count  int // number of events
	events map[intent.Path]event
}

// event is the last event of a path, with its number.
type event struct {
	number int
	state  bfd.BfdState
}

type entry struct {
	state     bfd.BfdState
	changedAt time.Time // time of the last change to or from the state Up
	createdAt time.Time // zero if the session existed before the agent's first reading
	foreign   bool
	refused   string
}

func (e *entry) up() bool { return e.refused == "" && e.state == bfd.BFD_STATE_API_UP }

// NewTracker returns a tracker that has no states yet, but knows which paths have been up before.
func NewTracker(upPaths *UpPathsFile, now func() time.Time) *Tracker {
	return &Tracker{now: now, upPaths: upPaths, paths: make(map[intent.Path]*entry), events: make(map[intent.Path]event)}
}

// Forget removes all states. Call it when the connection to VPP is made or lost.
func (b *Tracker) Forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.paths)
	clear(b.events)
}

// Mark returns the number of events so far. Call it before VPP's sessions are read, because events with
// larger numbers are then newer than the reading.
func (b *Tracker) Mark() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}

// Observation is the result of a reading of VPP's sessions.
type Observation struct {
	Mark     int
	Wanted   []intent.Path
	Sessions map[intent.Path]Session
	Ours     map[intent.Path]bool
	Created  map[intent.Path]bool // created since the last reading
	Refused  Refused
}

// Exclude removes the sessions of these paths from the observation, including sessions of other clients. The
// BFD packets of these paths take another route than the tunnels.
func (o *Observation) Exclude(paths Refused) {
	for path := range paths {
		delete(o.Sessions, path)
	}
}

// Apply updates the states from an observation, removes paths that are no longer wanted, and reports whether
// a state has changed.
func (b *Tracker) Apply(observed Observation) (changed bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	before := b.pathsLocked(now)
	known := b.paths
	b.paths = make(map[intent.Path]*entry, len(observed.Wanted))
	for _, path := range observed.Wanted {
		session, exists := observed.Sessions[path]
		if reported, later := b.events[path]; later && reported.number > observed.Mark {
			session.State = reported.state
		}
		was := known[path]
		e := &entry{state: session.State, changedAt: now, foreign: exists && !observed.Ours[path]}
		if !exists {
			if e.refused = observed.Refused[path]; e.refused == "" {
				continue // another client has just deleted the session; the next observation leads to its creation
			}
		}
		if was != nil && was.up() == e.up() && !observed.Created[path] {
			e.changedAt, e.createdAt = was.changedAt, was.createdAt
		}
		if observed.Created[path] {
			e.createdAt = now
		}
		b.paths[path] = e
		switch since := b.upPaths.DownSince(path); {
		case e.up():
			b.upPaths.Add(path)
		case was == nil && e.createdAt.IsZero() && !since.IsZero():
			e.changedAt = since // the outage began before the agent ended
		case e.createdAt.IsZero():
			b.upPaths.Lose(path, e.changedAt)
		}
	}
	maps.DeleteFunc(b.events, func(_ intent.Path, reported event) bool { return reported.number <= observed.Mark })
	b.upPaths.Keep(observed.Wanted)
	return !slices.Equal(before, b.pathsLocked(now)), b.upPaths.Write()
}

// HandleEvent updates the state from an event, and reports whether the state of a wanted path has changed.
func (b *Tracker) HandleEvent(path intent.Path, state bfd.BfdState) (changed bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count++
	b.events[path] = event{b.count, state}
	e := b.paths[path]
	if e == nil || e.refused != "" || e.state == state {
		return false, nil
	}
	now := b.now()
	before, was := b.stateOf(path, e, now), e.up()
	e.state = state
	if e.up() != was {
		e.changedAt = now
	}
	if e.up() {
		b.upPaths.Add(path)
	} else if was {
		b.upPaths.Lose(path, now)
	}
	err = b.upPaths.Write()
	return b.stateOf(path, e, now) != before, err
}

// Paths returns the states of all watched paths, sorted.
func (b *Tracker) Paths() []Watched {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pathsLocked(b.now())
}

func (b *Tracker) pathsLocked(now time.Time) []Watched {
	all := make([]Watched, 0, len(b.paths))
	for path, e := range b.paths {
		all = append(all, Watched{path, b.stateOf(path, e, now), e.changedAt, e.foreign, e.refused})
	}
	slices.SortFunc(all, func(x, y Watched) int { return x.Path.Compare(y.Path) })
	return all
}

func (b *Tracker) stateOf(path intent.Path, e *entry, now time.Time) State {
	fresh := !e.createdAt.IsZero() && e.changedAt.Equal(e.createdAt) && now.Sub(e.createdAt) < patience
	switch {
	case e.refused != "":
		return Refusal
	case e.up():
		return Up
	case e.state == bfd.BFD_STATE_API_ADMIN_DOWN:
		return Shut
	case fresh:
		return Starting
	case b.upPaths.Has(path):
		return Down
	}
	return Unheard
}

// UpPathsFile records which wanted paths have been up. If such a path is down now, the file also has the
// start of the outage. Only a path that has been up can have the state Down. The record survives restarts of
// VPP and of the agent.
type UpPathsFile struct {
	path      string
	downSince map[intent.Path]int64 // start of the outage, in ms since the Unix epoch; 0 while the path is up
	changed   bool
}

type upPath struct {
	intent.Path
	DownMS int64 `json:"down_ms,omitempty"`
}

// NoFile returns a record that exists only in memory.
func NoFile() *UpPathsFile { return &UpPathsFile{downSince: make(map[intent.Path]int64)} }

// OpenUpPaths reads the file in the folder. If the file is missing or cannot be decoded, the record is empty.
// OpenUpPaths returns an error if the file cannot be read.
func OpenUpPaths(folder string) (*UpPathsFile, error) {
	f := &UpPathsFile{path: filepath.Join(folder, "paths.json"), downSince: make(map[intent.Path]int64)}
	data, err := os.ReadFile(f.path)
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the paths that have been up: %w", err)
	}
	var paths []upPath
	if json.Unmarshal(data, &paths) == nil {
		for _, path := range paths {
			f.downSince[path.Path] = path.DownMS
		}
	}
	return f, nil
}

// Has reports whether the path has been up.
func (f *UpPathsFile) Has(path intent.Path) bool {
	_, has := f.downSince[path]
	return has
}

// Add records that the path is up.
func (f *UpPathsFile) Add(path intent.Path) { f.set(path, 0) }

// Lose records the start of an outage, if the path has been up before.
func (f *UpPathsFile) Lose(path intent.Path, since time.Time) {
	if f.Has(path) {
		f.set(path, since.UnixMilli())
	}
}

// DownSince returns the start of the path's outage, or the zero time if no outage is known.
func (f *UpPathsFile) DownSince(path intent.Path) time.Time {
	if ms := f.downSince[path]; ms != 0 {
		return time.UnixMilli(ms)
	}
	return time.Time{}
}

func (f *UpPathsFile) set(path intent.Path, downMS int64) {
	if was, has := f.downSince[path]; !has || was != downMS {
		f.downSince[path], f.changed = downMS, true
	}
}

// Keep removes all paths that are not in wanted.
func (f *UpPathsFile) Keep(wanted []intent.Path) {
	for path := range f.downSince {
		if !slices.Contains(wanted, path) {
			delete(f.downSince, path)
			f.changed = true
		}
	}
}

// Write writes changes to the file, without waiting for the disk. A power failure may lose the record.
func (f *UpPathsFile) Write() error {
	if !f.changed || f.path == "" {
		return nil
	}
	var paths []upPath
	for _, path := range slices.SortedFunc(maps.Keys(f.downSince), intent.Path.Compare) {
		paths = append(paths, upPath{path, f.downSince[path]})
	}
	data, err := json.Marshal(paths)
	if err == nil {
		err = durable.ReplaceUnsynced(f.path, data)
	}
	if err != nil {
		return fmt.Errorf("keep which paths have been up: %w", err)
	}
	f.changed = false
	return nil
}
