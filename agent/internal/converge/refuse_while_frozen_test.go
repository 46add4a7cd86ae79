package converge

import (
	"errors"
	"testing"
	"time"

	interfaces "go.fd.io/govpp/binapi/interface"

	"longline.dev/agent/internal/freeze"
	"longline.dev/agent/internal/intent"
)

func (r *router) freeze() {
	r.t.Helper()
	if _, err := r.FreezeHere("work on the line cards", time.Now().Add(time.Hour)); err != nil {
		r.t.Fatal(err)
	}
}

// refuses reports whether an intent is refused because the router is frozen.
func (r *router) refuses() bool {
	stored, _ := r.store.Current()
	next := *stored
	next.Generation++
	_, err := r.Put(r.t.Context(), &next, "")
	var frozen *FrozenError
	return errors.As(err, &frozen)
}

func (r *router) keeps(id string) bool {
	stored := r.Status().Freeze
	return stored != nil && stored.ID == id && !stored.Over(time.Now())
}

func TestFreezePreventsRepairsUntilTheReview(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.put([]intent.End{vxlanEnd(1, r.ports[0])}).mustAllBe(t, "verified")
		r.freeze()
		r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: r.index(r.ports[0] + ".101"), Flags: 0})
		left := func(when string) {
			t.Helper()
			if r.repair(t.Context()) || !r.fieldsOff()["admin_up"] {
				t.Errorf("%s: it was repaired", when)
			}
		}
		left("while it is frozen")
		if !r.refuses() {
			t.Error("an intent was taken")
		}
		r.convergeNewConnection(t.Context())
		left("after a new connection")
		r.open()
		r.convergeNewConnection(t.Context())
		left("after a new start of the agent")
		if err := r.Unfreeze(); err != nil {
			t.Fatal(err)
		}
		left("after the freeze, before the review")
		over := r.Status().Freeze
		if over == nil || !over.Over(time.Now()) {
			t.Fatalf("the freeze is %+v, want one that is over", over)
		}
		if !r.refuses() || r.Converge(t.Context()) != nil {
			t.Error("an intent was taken before the review")
		}
		stored, _ := r.store.Current()
		outcome, err := r.Put(t.Context(), stored, over.ID)
		if err != nil {
			t.Fatal(err)
		}
		outcome.mustAllBe(t, "verified")
		if off := r.fieldsOff(); len(off) != 0 || r.Status().Freeze != nil {
			t.Errorf("after the review these are off: %v; the freeze is %+v", off, r.Status().Freeze)
		}
	})
}

func TestFreezePreventsChangesAfterARestartOfVPP(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.put([]intent.End{vxlanEnd(1, r.ports[0])}).mustAllBe(t, "verified")
		r.freeze()
		r.restartVPP()
		r.convergeNewConnection(t.Context())
		if r.repair(t.Context()); len(r.fieldsOff()) == 0 {
			t.Error("the line was made again")
		}
		if err := r.Ready(); err == nil {
			t.Error("it counts as applied")
		}
	})
}

func TestFreezeWithoutDifferencesNeedsNoReview(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.put([]intent.End{vxlanEnd(1, r.ports[0])}).mustAllBe(t, "verified")
		r.freeze()
		r.repair(t.Context())
		if r.Status().Freeze == nil {
			t.Fatal("it is not frozen any more")
		}
		if err := r.Unfreeze(); err != nil {
			t.Fatal(err)
		}
		r.repair(t.Context())
		if stored := r.Status().Freeze; stored != nil {
			t.Errorf("the freeze stays: %+v", stored)
		}
		r.put([]intent.End{vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[1])}).mustAllBe(t, "verified")
	})
}

// TestBlockedEndNeedsAReviewAfterARestartOfTheAgent: the agent restarted during the freeze, before it had
// applied the stored intent.
func TestBlockedEndNeedsAReviewAfterARestartOfTheAgent(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		line := vxlanEnd(1, r.ports[0])
		r.put([]intent.End{line}).mustAllBe(t, "verified")
		stored, _ := r.store.Current()
		next := *stored
		next.Generation++
		if err := r.store.Accept(&next); err != nil {
			t.Fatal(err)
		}
		r.freeze()
		r.must(&interfaces.DeleteSubif{SwIfIndex: r.index(r.ports[0] + ".101")})
		r.must(&interfaces.DeleteLoopback{SwIfIndex: r.index(r.ports[0])})
		r.open()
		r.convergeNewConnection(t.Context())
		if err := r.Unfreeze(); err != nil {
			t.Fatal(err)
		}
		r.repair(t.Context())
		if over := r.Status().Freeze; over == nil || !over.Over(time.Now()) {
			t.Errorf("the freeze is %+v, want one that is over without a review", over)
		}
	})
}

func TestPortalCannotEndAFreezeOfAnOperatorOnTheRouter(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.put([]intent.End{vxlanEnd(1, r.ports[0])}).mustAllBe(t, "verified")
		until := time.Now().Add(time.Hour)
		r.PortalFreezes("one", "upgrade", until)
		if stored := r.Status().Freeze; stored == nil || stored.By != freeze.ByPortal || stored.Reason != "upgrade" {
			t.Fatalf("the freeze is %+v", stored)
		}
		if _, err := r.FreezeHere("mine", until); err == nil {
			t.Error("two freezes at a time")
		}
		r.PortalFreezes("", "", time.Time{})
		r.repair(t.Context())
		if stored := r.Status().Freeze; stored != nil {
			t.Fatalf("the portal ended it, and it is %+v", stored)
		}
		r.freeze()
		r.PortalFreezes("", "", time.Time{})
		r.PortalFreezes("two", "upgrade", until)
		if stored := r.Status().Freeze; stored == nil || stored.By != freeze.ByRouter || stored.Over(time.Now()) {
			t.Errorf("the freeze is %+v, want the operator's", stored)
		}
		if err := r.Unfreeze(); err != nil {
			t.Fatal(err)
		}
		if r.PortalFreezes("two", "upgrade", until); !r.keeps("two") {
			t.Error("the portal's does not follow the operator's")
		}
		r.PortalFreezes("", "", time.Time{})
		r.PortalFreezes("three", "too late", time.Now().Add(-time.Minute))
		if stored := r.Status().Freeze; stored == nil || stored.ID == "three" {
			t.Errorf("the freeze is %+v, want the one that is over", stored)
		}
	})
}

func TestRouterIsNotFrozenDuringATestOfALineInService(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		end := vxlanEnd(1, r.ports[0])
		end.Testing = true
		r.put([]intent.End{end})
		var testing *TestUnderWayError
		if _, err := r.FreezeHere("mine", time.Now().Add(time.Hour)); !errors.As(err, &testing) {
			t.Errorf("frozen during a test: %v", err)
		}
		until := time.Now().Add(time.Hour)
		if r.PortalFreezes("one", "upgrade", until); r.keeps("one") {
			t.Error("the portal froze it during a test")
		}
		r.now = func() time.Time { return time.Now().Add(longestTest) }
		if r.PortalFreezes("one", "upgrade", until); !r.keeps("one") {
			t.Error("a line that is not in service yet keeps the router from being frozen")
		}
	})
}

func TestFreezeRefusesAllOperations(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		end := vxlanEnd(1, r.ports[0])
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		r.freeze()
		var frozen *FrozenError
		if _, err := r.Claim(t.Context(), end.Key, ""); !errors.As(err, &frozen) {
			t.Errorf("claim: %v", err)
		}
		if _, err := r.Release(t.Context(), end.Key, ""); !errors.As(err, &frozen) {
			t.Errorf("release: %v", err)
		}
		if _, err := r.SendTestFrames(t.Context(), &intent.TestFrames{Key: end.Key, Revision: 1}); !errors.As(err, &frozen) {
			t.Errorf("test frames: %v", err)
		}
		if _, err := NewCalibrator(r.Engine, maintenance(true, true)).Calibrate(t.Context(), true); !errors.As(err, &frozen) {
			t.Errorf("calibration: %v", err)
		}
	})
}
