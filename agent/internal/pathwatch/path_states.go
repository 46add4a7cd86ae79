package pathwatch

import (
	"maps"
	"slices"
	"sync"
	"time"

	"go.fd.io/govpp/binapi/bfd"

	"longline.dev/agent/internal/intent"
)

// State is how a path stands, as docs/reference/agent-reports.md writes it.
type State string

const (
	// Up: both routers hear each other.
	Up State = "up"
	// Down: they did, and do not any more.
	Down State = "down"
	// Starting: the session was made a moment ago.
	Starting State = "starting"
	// Unheard: it has been there for a while and never was up. Perhaps the far router has none, or UDP port 4784 is filtered;
	// it says nothing of what tunnels carry.
	Unheard State = "unheard"
	// Shut: somebody has shut a session that is not the agent's.
	Shut State = "shut"
	// Refusal: VPP would not make the session.
	Refusal State = "refused"
)

// States are all of them.
var States = []State{Up, Down, Starting, Unheard, Shut, Refusal}

// patience is for how long a session may be on its way up: VPP sends a packet a second until it is, and the far router's may be
// made later than the own.
const patience = 10 * time.Second

// Watched is how a path stands.
type Watched struct {
	intent.Path
	State   State
	Since   time.Time
	Foreign bool   // the session is somebody else's, and only read
	Detail  string // VPP's words, where it refused
}

// Book knows how the watched paths stand. It is safe for concurrent use.
type Book struct {
	now   func() time.Time
	heard *HeardFile

	mu     sync.Mutex
	paths  map[intent.Path]*entry
	count  int // of events
	events map[intent.Path]event
}

// event is the last that was told of a path, and its number.
type event struct {
	number int
	state  bfd.BfdState
}

type entry struct {
	state   bfd.BfdState
	turned  time.Time // when it went up, or ceased to be
	made    time.Time // zero: it was there already when the agent came
	foreign bool
	refused string
}

func (e *entry) up() bool { return e.refused == "" && e.state == bfd.BFD_STATE_API_UP }

// NewBook begins with nothing known but which paths have been up before.
func NewBook(heard *HeardFile, now func() time.Time) *Book {
	return &Book{now: now, heard: heard, paths: make(map[intent.Path]*entry), events: make(map[intent.Path]event)}
}

// Forget is for when VPP is away: nothing is known of its sessions.
func (b *Book) Forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.paths)
	clear(b.events)
}

// Mark is to be taken before VPP's sessions are read: what is told of them from then on is newer than the reading.
func (b *Book) Mark() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}

// Look is what a reading of VPP's sessions found.
type Look struct {
	Mark    int
	Wanted  []intent.Path
	There   map[intent.Path]Session
	Ours    map[intent.Path]bool
	Made    map[intent.Path]bool // just now
	Refused Refused
}

// Disbelieve leaves out the sessions of paths that their packets do not take, whoever made them.
func (l *Look) Disbelieve(paths Refused) {
	for path := range paths {
		delete(l.There, path)
	}
}

// Take takes a reading in, and says whether a path stands otherwise than before. A path that is no longer wanted is forgotten.
func (b *Book) Take(look Look) (changed bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	before := b.pathsLocked(now)
	known := b.paths
	b.paths = make(map[intent.Path]*entry, len(look.Wanted))
	for _, path := range look.Wanted {
		session, is := look.There[path]
		if told, later := b.events[path]; later && told.number > look.Mark {
			session.State = told.state
		}
		was := known[path]
		e := &entry{state: session.State, turned: now, foreign: is && !look.Ours[path]}
		if !is {
			if e.refused = look.Refused[path]; e.refused == "" {
				continue // somebody deleted it just now; the next round makes it anew
			}
		}
		if was != nil && was.up() == e.up() && !look.Made[path] {
			e.turned, e.made = was.turned, was.made
		}
		if look.Made[path] {
			e.made = now
		}
		b.paths[path] = e
		switch since := b.heard.DownSince(path); {
		case e.up():
			b.heard.Add(path)
		case was == nil && e.made.IsZero() && !since.IsZero():
			e.turned = since // as it was when the agent ended
		case e.made.IsZero():
			b.heard.Lose(path, e.turned)
		}
	}
	maps.DeleteFunc(b.events, func(_ intent.Path, told event) bool { return told.number <= look.Mark })
	b.heard.Keep(look.Wanted)
	return !slices.Equal(before, b.pathsLocked(now)), b.heard.Write()
}

// Turn takes in what an event says, and says whether that is news of a path that is wanted.
func (b *Book) Turn(path intent.Path, state bfd.BfdState) (news bool, err error) {
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
		e.turned = now
	}
	if e.up() {
		b.heard.Add(path)
	} else if was {
		b.heard.Lose(path, now)
	}
	err = b.heard.Write()
	return b.stateOf(path, e, now) != before, err
}

// Paths are all that are watched, sorted.
func (b *Book) Paths() []Watched {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pathsLocked(b.now())
}

func (b *Book) pathsLocked(now time.Time) []Watched {
	all := make([]Watched, 0, len(b.paths))
	for path, e := range b.paths {
		all = append(all, Watched{path, b.stateOf(path, e, now), e.turned, e.foreign, e.refused})
	}
	slices.SortFunc(all, func(x, y Watched) int { return x.Path.Compare(y.Path) })
	return all
}

func (b *Book) stateOf(path intent.Path, e *entry, now time.Time) State {
	fresh := !e.made.IsZero() && e.turned.Equal(e.made) && now.Sub(e.made) < patience
	switch {
	case e.refused != "":
		return Refusal
	case e.up():
		return Up
	case e.state == bfd.BFD_STATE_API_ADMIN_DOWN:
		return Shut
	case fresh:
		return Starting
	case b.heard.Has(path):
		return Down
	}
	return Unheard
}
