package converge

import (
	"testing"
	"time"

	"longline.dev/agent/internal/intent"
)

// TestObservationsBeforeAReplyHaveSmallerNumbers: the portal ignores a report that was sent before the
// reply arrived.
func TestObservationsBeforeAReplyHaveSmallerNumbers(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		number := func() int64 {
			t.Helper()
			p, err := r.ObservedState(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return p.ObservationNumber
		}
		end := vxlanEnd(1, r.ports[0])
		for range 3 {
			before := number()
			end.Revision++
			answer := r.put([]intent.End{end})
			answer.mustAllBe(t, "verified")
			if answer.ObservationNumber <= before {
				t.Errorf("the reply has %d, the observation before it %d", answer.ObservationNumber, before)
			}
			if after := number(); after < answer.ObservationNumber {
				t.Errorf("the reply has %d, the observation after it %d", answer.ObservationNumber, after)
			}
		}
		before := number()
		r.Attach(nil)
		if away := r.Status().ObservationNumber; away <= before {
			t.Errorf("the loss of VPP has %d, the observation before it %d", away, before)
		}
	})
}

func TestNumbersGrowIfTheClockStopsOrGoesBack(t *testing.T) {
	now := time.UnixMilli(1_790_000_000_000)
	e := New(nil, nil, nil, func() time.Time { return now }, Options{})
	last := int64(0)
	for range 3 {
		e.Attach(nil)
		number, _ := e.lastObserved()
		if number <= last {
			t.Errorf("%d after %d", number, last)
		}
		last = number
		now = now.Add(-time.Hour)
	}
}
