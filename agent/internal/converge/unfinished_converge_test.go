package converge

import (
	"os"
	"path/filepath"
	"testing"

	"longline.dev/agent/internal/intent"
)

// fullDisk prevents writes of the journal until freed is called.
func (r *router) fullDisk() (freed func()) {
	r.t.Helper()
	// Neither file of the journal can replace a folder that is not empty. Removing the
	// permission to write would not stop root.
	var blockers []string
	for _, name := range []string{"journal.json", "journal.json.new"} {
		path := filepath.Join(r.folder, name)
		if err := os.RemoveAll(path); err != nil {
			r.t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(path, "full"), 0o700); err != nil {
			r.t.Fatal(err)
		}
		blockers = append(blockers, path)
	}
	return func() {
		for _, path := range blockers {
			if err := os.RemoveAll(path); err != nil {
				r.t.Error(err)
			}
		}
	}
}

func TestConvergeWithoutAJournalIsFinishedLater(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.put([]intent.End{vxlanEnd(1, r.ports[0])}).mustAllBe(t, "verified")
		if err := os.Remove(filepath.Join(r.folder, "journal.json")); err != nil {
			t.Fatal(err)
		}
		r.open() // a new start of the agent, which has applied nothing yet
		freed := r.fullDisk()
		if outcome := r.Converge(t.Context()); outcome.Applied {
			t.Error("it was applied without a journal")
		}
		if r.Ready() == nil {
			t.Error("ready before it was applied")
		}
		freed()
		r.repair(t.Context())
		if err := r.Ready(); err != nil {
			t.Errorf("nothing is left to do, and still: %v", err)
		}
		if r.repair(t.Context()) {
			t.Error("finished work is done again")
		}
	})
}

func TestReportOnlyBuildsANewRunOfVPPAfterAFailedAttempt(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.options.Repair = ReportOnly
		r.put([]intent.End{vxlanEnd(1, r.ports[0])}).mustAllBe(t, "verified")
		r.restartVPP()
		freed := r.fullDisk()
		r.convergeNewConnection(t.Context())
		freed()
		r.repair(t.Context())
		if off := r.fieldsOff(); len(off) != 0 {
			t.Errorf("these are missing: %v", off)
		}
		if err := r.Ready(); err != nil {
			t.Error(err)
		}
	})
}
