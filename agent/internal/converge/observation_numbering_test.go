package converge

import (
	"testing"
	"time"

	"longline.dev/agent/internal/intent"
)

// TestWhatWasSeenBeforeAnAnswerHasASmallerNumber: the portal leaves a report that was on its way already when
// the answer came.
func TestWhatWasSeenBeforeAnAnswerHasASmallerNumber(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		look := func() int64 {
			t.Helper()
			p, err := r.ObservedState(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return p.ObservationNumber
		}
		end := vxlanEnd(1, r.ports[0])
		for range 3 {
			before := look()
			end.Revision++
			answer := r.put([]intent.End{end})
			answer.mustAllBe(t, "verified")
			if answer.ObservationNumber <= before {
				t.Errorf("the answer bears %d, what was seen before it %d", answer.ObservationNumber, before)
			}
			if after := look(); after < answer.ObservationNumber {
				t.Errorf("the answer bears %d, what was seen after it %d", answer.ObservationNumber, after)
			}
		}
		before := look()
		r.Attach(nil)
		if away := r.Status().ObservationNumber; away <= before {
			t.Errorf("that VPP is away bears %d, what was seen before it %d", away, before)
		}
	})
}

func TestTheNumbersGrowThoughTheClockStandsOrGoesBack(t *testing.T) {
	now := time.UnixMilli(1_790_000_000_000)
	e := New(nil, nil, nil, func() time.Time { return now })
	last := int64(0)
	for range 3 {
		e.Attach(nil)
		look, _ := e.lastObserved()
		if look <= last {
			t.Errorf("%d after %d", look, last)
		}
		last = look
		now = now.Add(-time.Hour)
	}
}
