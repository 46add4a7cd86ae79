package converge

import (
	"testing"
	"time"

	"longline.dev/agent/internal/intent"
)

// TestTestedSinceContainsTestsBetweenTwoSamples: a test that started and ended since the last sample, and a
// running one.
func TestTestedSinceContainsTestsBetweenTwoSamples(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		tested, serving := testedEnd(1, r.ports[0]), vxlanEnd(1, r.ports[0])
		other := vxlanEnd(2, r.ports[0])
		r.put([]intent.End{serving, other}).mustAllBe(t, "verified")
		before := time.Now()
		if known := r.TestedSince(before); len(known) != 0 {
			t.Errorf("nothing was tested, and it says %v", known)
		}
		r.put([]intent.End{tested, other})
		if known := r.TestedSince(before.Add(time.Hour)); len(known) != 0 {
			t.Errorf("of an hour that has not begun it says %v", known)
		}
		if known := r.TestedSince(before); len(known) != 1 || !known[tested.Key] {
			t.Errorf("while it is tested: %v", known)
		}
		r.put([]intent.End{serving, other})
		after := time.Now()
		if known := r.TestedSince(before); len(known) != 1 || !known[tested.Key] {
			t.Errorf("after the test: %v", known)
		}
		if known := r.TestedSince(after); len(known) != 0 {
			t.Errorf("since the test ended: %v", known)
		}
	})
}
