package pathwatch

import (
	"net/netip"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/bfd"

	"longline.dev/agent/internal/intent"
)

var toHippo = intent.Path{Local: netip.MustParseAddr("10.255.0.1"), Remote: netip.MustParseAddr("10.255.0.2")}

// notes is a tracker with a simulated clock.
type notes struct {
	*Tracker
	t   *testing.T
	now time.Time
}

func newNotes(t *testing.T, folder string) *notes {
	t.Helper()
	upPaths, err := OpenUpPaths(folder)
	if err != nil {
		t.Fatal(err)
	}
	n := &notes{t: t, now: time.UnixMilli(1_790_000_000_000)}
	n.Tracker = NewTracker(upPaths, func() time.Time { return n.now })
	return n
}

// observe applies a reading in which the agent's session has that state.
func (n *notes) observe(state bfd.BfdState, made bool) {
	n.t.Helper()
	_, err := n.Apply(Observation{
		Mark: n.Mark(), Wanted: []intent.Path{toHippo}, Sessions: map[intent.Path]Session{toHippo: {State: state}},
		Ours: map[intent.Path]bool{toHippo: true}, Created: map[intent.Path]bool{toHippo: made},
	})
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *notes) event(state bfd.BfdState) (changed bool) {
	n.t.Helper()
	changed, err := n.HandleEvent(toHippo, state)
	if err != nil {
		n.t.Fatal(err)
	}
	return changed
}

func (n *notes) must(want State) Watched {
	n.t.Helper()
	paths := n.Paths()
	if len(paths) != 1 || paths[0].State != want {
		n.t.Fatalf("%+v, want %s", paths, want)
	}
	return paths[0]
}

const (
	bfdDown = bfd.BFD_STATE_API_DOWN
	bfdInit = bfd.BFD_STATE_API_INIT
	bfdUp   = bfd.BFD_STATE_API_UP
)

func TestSessionThatWasNeverUpIsUnheard(t *testing.T) {
	n := newNotes(t, t.TempDir())
	n.observe(bfdDown, true)
	n.must(Starting)
	n.now = n.now.Add(patience)
	n.observe(bfdDown, false)
	n.must(Unheard)
	n.event(bfdInit)
	n.must(Unheard)
}

func TestPathIsDownSinceTheEndOfTheStateUp(t *testing.T) {
	n := newNotes(t, t.TempDir())
	n.observe(bfdDown, true)
	n.now = n.now.Add(time.Second)
	if !n.event(bfdUp) {
		t.Error("no change is reported after the event up")
	}
	n.must(Up)
	n.now = n.now.Add(time.Minute)
	failed := n.now
	if !n.event(bfdDown) {
		t.Error("no change is reported after the event down")
	}
	n.now = n.now.Add(time.Second)
	if n.event(bfdInit) || n.event(bfdDown) {
		t.Error("a change is reported although the path is still down")
	}
	n.observe(bfdDown, false)
	if got := n.must(Down); !got.Since.Equal(failed) {
		t.Errorf("down since %s, want %s", got.Since, failed)
	}
}

func TestPathStaysDownAcrossARestartOfTheAgent(t *testing.T) {
	folder := t.TempDir()
	n := newNotes(t, folder)
	n.observe(bfdUp, false)
	failed := n.now
	n.event(bfdDown)
	again := newNotes(t, folder)
	again.now = failed.Add(time.Hour)
	again.observe(bfdDown, false)
	if got := again.must(Down); !got.Since.Equal(failed) {
		t.Errorf("down since %s, want %s", got.Since, failed)
	}
	again.event(bfdUp)
	later := newNotes(t, folder)
	later.now = failed.Add(2 * time.Hour)
	later.observe(bfdDown, false)
	if got := later.must(Down); !got.Since.Equal(later.now) {
		t.Errorf("down since %s, want %s", got.Since, later.now)
	}
}

func TestRecreatedSessionIsStarting(t *testing.T) {
	folder := t.TempDir()
	newNotes(t, folder).observe(bfdUp, false)
	n := newNotes(t, folder)
	n.observe(bfdDown, true)
	n.must(Starting)
	n.now = n.now.Add(patience)
	n.must(Down)
}

func TestPathThatIsNotWantedIsRemoved(t *testing.T) {
	folder := t.TempDir()
	n := newNotes(t, folder)
	n.observe(bfdUp, false)
	if _, err := n.Apply(Observation{Mark: n.Mark()}); err != nil || len(n.Paths()) != 0 {
		t.Fatal(err, n.Paths())
	}
	again := newNotes(t, folder)
	again.observe(bfdDown, false)
	again.must(Unheard)
}

func TestEventsDuringAReadingReplaceTheReading(t *testing.T) {
	n := newNotes(t, t.TempDir())
	n.observe(bfdUp, false)
	mark := n.Mark()
	n.event(bfdDown)
	_, err := n.Apply(Observation{Mark: mark, Wanted: []intent.Path{toHippo}, Sessions: map[intent.Path]Session{toHippo: {State: bfdUp}}})
	if err != nil {
		t.Fatal(err)
	}
	n.must(Down)
	n.observe(bfdUp, false)
	n.must(Up)
}

func TestForeignSessionCanBeShut(t *testing.T) {
	n := newNotes(t, t.TempDir())
	shut := map[intent.Path]Session{toHippo: {State: bfd.BFD_STATE_API_ADMIN_DOWN}}
	if _, err := n.Apply(Observation{Mark: n.Mark(), Wanted: []intent.Path{toHippo}, Sessions: shut}); err != nil {
		t.Fatal(err)
	}
	if !n.must(Shut).Foreign {
		t.Error("it is not reported as foreign")
	}
}

func TestRefusedSessionHasVPPsErrorText(t *testing.T) {
	n := newNotes(t, t.TempDir())
	if _, err := n.Apply(Observation{Mark: n.Mark(), Wanted: []intent.Path{toHippo}, Refused: Refused{toHippo: "no"}}); err != nil {
		t.Fatal(err)
	}
	if got := n.must(Refusal); got.Detail != "no" {
		t.Errorf("%+v", got)
	}
	n.observe(bfdDown, true)
	n.must(Starting)
}
