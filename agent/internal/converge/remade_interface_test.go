package converge

import (
	"testing"

	"longline.dev/agent/internal/intent"
)

func TestRecreatedInterfaceIsDistinguishedFromThePreviousOne(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		end := vxlanEnd(1, r.ports[0])
		name := r.ports[0] + ".101"
		made := func() int64 {
			t.Helper()
			state, err := r.ObservedState(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return state.Made[uint32(r.index(name))]
		}
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		first := made()
		end.Frame -= 100
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		if got := made(); got != first || first == 0 {
			t.Errorf("an MTU was changed in place, and the interface counts as made: %d, then %d", first, got)
		}
		end.Access.Exact = !end.Access.Exact
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		second := made()
		if second <= first {
			t.Errorf("it was recreated, but the numbers do not show it: %d, then %d", first, second)
		}
		r.open()
		if got := made(); got != 0 {
			t.Errorf("a new start of the agent found it there, and says %d", got)
		}
	})
}
