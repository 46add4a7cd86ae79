package report

import (
	"errors"
	"testing"
	"time"

	"longline.dev/agent/internal/converge"
)

// frozenEngine refuses every rebuild.
type frozenEngine struct{ dyingVPP }

func (*frozenEngine) Rebuild(uint32, string, bool) error { return converge.ErrNotRepaired }

// TestARefusedRequestKeepsTheRecordOfAFailedRebuild: otherwise the agent would rebuild the end
// automatically a second time.
func TestARefusedRequestKeepsTheRecordOfAFailedRebuild(t *testing.T) {
	w := newWire(t)
	w.pass(time.Minute, 5, 0)
	w.lost, w.hopeless = true, true
	w.pass(time.Hour, 5, 0)
	before := w.watch.rebuilds.of(alice.Key)
	if before == nil || !before.Failed {
		t.Fatalf("no failed rebuild: %+v", before)
	}
	r := New(Options{Engine: &frozenEngine{}, Folder: w.folder, Log: quiet, Now: func() time.Time { return w.at }})
	r.vlans.ends = w.watch.ends
	if err := r.RebuildVLAN(alice.Key); !errors.Is(err, converge.ErrNotRepaired) {
		t.Fatalf("got %v", err)
	}
	kept, _ := openRebuilds(w.folder, quiet)
	if after := kept.of(alice.Key); after == nil || !after.Failed {
		t.Errorf("on disk: %+v, want %+v", after, before)
	}
}

// TestARebuildThatDidNotHappenIsReported: the connection to VPP was replaced before the engine carried it
// out, for example.
func TestARebuildThatDidNotHappenIsReported(t *testing.T) {
	w := newWire(t)
	w.pass(time.Minute, 5, 0)
	if err := w.watch.begin(w.at, w.access, false); err != nil {
		t.Fatal(err)
	}
	w.lost, w.hopeless = true, true
	w.pass(10*time.Minute, 5, 0)
	if len(w.notRestored) != 1 || w.state() != VLANNotRestored || w.rebuilds != 0 {
		t.Errorf("events %q, state %q, %d rebuilds", w.notRestored, w.state(), w.rebuilds)
	}
	w.lost = false
	w.pass(time.Minute, 5, 0)
	if w.state() != "" {
		t.Errorf("frames arrive, and the state is %q", w.state())
	}
	w.lost, w.hopeless = true, false
	w.pass(10*time.Minute, 5, 0)
	if w.rebuilds != 0 || w.state() != VLANNotRestored {
		t.Errorf("lost again: %d rebuilds, state %q; only an operator may request another one", w.rebuilds, w.state())
	}
}
