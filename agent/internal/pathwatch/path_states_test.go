package pathwatch

import (
	"net/netip"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/bfd"

	"longline.dev/agent/internal/intent"
)

var toHippo = intent.Path{Local: netip.MustParseAddr("10.255.0.1"), Remote: netip.MustParseAddr("10.255.0.2")}

// notes is a book with a clock of its own.
type notes struct {
	*Book
	t   *testing.T
	now time.Time
}

func newNotes(t *testing.T, folder string) *notes {
	t.Helper()
	heard, err := OpenHeard(folder)
	if err != nil {
		t.Fatal(err)
	}
	n := &notes{t: t, now: time.UnixMilli(1_790_000_000_000)}
	n.Book = NewBook(heard, func() time.Time { return n.now })
	return n
}

// look takes in that the own session stands so.
func (n *notes) look(state bfd.BfdState, made bool) {
	n.t.Helper()
	_, err := n.Take(Look{
		Mark: n.Mark(), Wanted: []intent.Path{toHippo}, There: map[intent.Path]Session{toHippo: {State: state}},
		Ours: map[intent.Path]bool{toHippo: true}, Made: map[intent.Path]bool{toHippo: made},
	})
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *notes) turn(state bfd.BfdState) (news bool) {
	n.t.Helper()
	news, err := n.Turn(toHippo, state)
	if err != nil {
		n.t.Fatal(err)
	}
	return news
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

func TestASessionThatNeverWasUpIsNotCalledDown(t *testing.T) {
	n := newNotes(t, t.TempDir())
	n.look(bfdDown, true)
	n.must(Starting)
	n.now = n.now.Add(patience)
	n.look(bfdDown, false)
	n.must(Unheard)
	n.turn(bfdInit)
	n.must(Unheard)
}

func TestAPathIsDownSinceItCeasedToBeUp(t *testing.T) {
	n := newNotes(t, t.TempDir())
	n.look(bfdDown, true)
	n.now = n.now.Add(time.Second)
	if !n.turn(bfdUp) {
		t.Error("that it is up is no news")
	}
	n.must(Up)
	n.now = n.now.Add(time.Minute)
	failed := n.now
	if !n.turn(bfdDown) {
		t.Error("that it is down is no news")
	}
	n.now = n.now.Add(time.Second)
	if n.turn(bfdInit) || n.turn(bfdDown) {
		t.Error("on its way up it is still down, and that is no news")
	}
	n.look(bfdDown, false)
	if got := n.must(Down); !got.Since.Equal(failed) {
		t.Errorf("down since %s, want %s", got.Since, failed)
	}
}

func TestAPathThatIsDownStaysSoWhenTheAgentStartsAnew(t *testing.T) {
	folder := t.TempDir()
	n := newNotes(t, folder)
	n.look(bfdUp, false)
	failed := n.now
	n.turn(bfdDown)
	again := newNotes(t, folder)
	again.now = failed.Add(time.Hour)
	again.look(bfdDown, false)
	if got := again.must(Down); !got.Since.Equal(failed) {
		t.Errorf("down since %s, want %s", got.Since, failed)
	}
	again.turn(bfdUp)
	later := newNotes(t, folder)
	later.now = failed.Add(2 * time.Hour)
	later.look(bfdDown, false)
	if got := later.must(Down); !got.Since.Equal(later.now) {
		t.Errorf("down since %s, want %s", got.Since, later.now)
	}
}

func TestASessionMadeAnewHasAWhileToComeUp(t *testing.T) {
	folder := t.TempDir()
	newNotes(t, folder).look(bfdUp, false)
	n := newNotes(t, folder)
	n.look(bfdDown, true)
	n.must(Starting)
	n.now = n.now.Add(patience)
	n.must(Down)
}

func TestAPathThatIsNotWantedIsForgotten(t *testing.T) {
	folder := t.TempDir()
	n := newNotes(t, folder)
	n.look(bfdUp, false)
	if _, err := n.Take(Look{Mark: n.Mark()}); err != nil || len(n.Paths()) != 0 {
		t.Fatal(err, n.Paths())
	}
	again := newNotes(t, folder)
	again.look(bfdDown, false)
	again.must(Unheard)
}

func TestWhatIsToldWhileSessionsAreReadIsNewerThanTheReading(t *testing.T) {
	n := newNotes(t, t.TempDir())
	n.look(bfdUp, false)
	mark := n.Mark()
	n.turn(bfdDown)
	_, err := n.Take(Look{Mark: mark, Wanted: []intent.Path{toHippo}, There: map[intent.Path]Session{toHippo: {State: bfdUp}}})
	if err != nil {
		t.Fatal(err)
	}
	n.must(Down)
	n.look(bfdUp, false)
	n.must(Up)
}

func TestAForeignSessionIsReadAndCanBeShut(t *testing.T) {
	n := newNotes(t, t.TempDir())
	shut := map[intent.Path]Session{toHippo: {State: bfd.BFD_STATE_API_ADMIN_DOWN}}
	if _, err := n.Take(Look{Mark: n.Mark(), Wanted: []intent.Path{toHippo}, There: shut}); err != nil {
		t.Fatal(err)
	}
	if !n.must(Shut).Foreign {
		t.Error("it is not said to be somebody else's")
	}
}

func TestWhatVPPRefusedIsSaid(t *testing.T) {
	n := newNotes(t, t.TempDir())
	if _, err := n.Take(Look{Mark: n.Mark(), Wanted: []intent.Path{toHippo}, Refused: Refused{toHippo: "no"}}); err != nil {
		t.Fatal(err)
	}
	if got := n.must(Refusal); got.Detail != "no" {
		t.Errorf("%+v", got)
	}
	n.look(bfdDown, true)
	n.must(Starting)
}
