package converge

import (
	"context"
	"testing"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
)

// countingReads is a session that counts the dumps of all interfaces.
type countingReads struct {
	*vpp.Session
	all int
}

func (a *countingReads) Dump(ctx context.Context, requests []api.Message, each func(api.Message)) error {
	for _, request := range requests {
		if dump, ok := request.(*interfaces.SwInterfaceDump); ok && uint32(dump.SwIfIndex) == ^uint32(0) {
			a.all++
		}
	}
	return a.Session.Dump(ctx, requests, each)
}

// countReads gives the engine VPP's stats segment, and counts from now on.
func (r *router) countReads() *countingReads {
	r.t.Helper()
	r.options.Epoch = statseg.NewReopeningSegment(r.stats).Epoch
	session := &countingReads{Session: r.session}
	r.mu.Lock()
	r.Engine.session = session // the same connection, so the engine keeps its observations
	r.mu.Unlock()
	return session
}

func TestPartialObservationReadsChangedLinesAndForeignObjects(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		first, second, third := vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[0]), vxlanEnd(3, r.ports[1])
		session := r.countReads()
		r.put([]intent.End{first, second}).mustAllBe(t, "verified")
		r.repair(t.Context()) // as soon after each change
		session.all = 0
		third.Access.Exact = false
		r.put([]intent.End{first, second, third}).mustAllBe(t, "verified")
		if totals := r.Status().Statistics; session.all != 0 || totals.PartialObservations != 1 {
			t.Errorf("all interfaces were read %d times, observed in part %d times", session.all, totals.PartialObservations)
		}
		r.repair(t.Context())
		session.all = 0
		for what, change := range map[string]func(){
			"in place": func() { second.Revision, second.AdminUp = 2, false },
			"its key":  func() { third.Access.Outer++ },
		} {
			change()
			r.put([]intent.End{first, second, third}).mustAllBe(t, "verified")
			if off := r.fieldsOff(); len(off) != 0 {
				t.Errorf("%s: left to do: %v", what, off)
			}
			r.repair(t.Context())
		}
		r.put([]intent.End{first}, tombstone(second), tombstone(third))
		if off := r.fieldsOff(); len(off) != 0 {
			t.Errorf("after the removal: left to do: %v", off)
		}
	})
}

// TestQuickObservationFindsDriftThatAPartialOneDoesNotRead covers lines that a document does not change.
func TestQuickObservationFindsDriftThatAPartialOneDoesNotRead(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		first, second := vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[0])
		r.countReads()
		r.put([]intent.End{first}).mustAllBe(t, "verified")
		r.repair(t.Context())
		r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: r.index(r.ports[0] + ".101")})
		r.put([]intent.End{first, second}).mustAllBe(t, "verified")
		if !r.repair(t.Context()) {
			t.Error("the quick observation found nothing")
		}
		state, err := r.ObservedStateToReport(t.Context())
		if err != nil || len(state.Drift[first.Key]) == 0 {
			t.Errorf("%v, reported: %v", err, state.Drift)
		}
		if !r.snapshot().ByName(r.ports[0] + ".101").AdminUp {
			t.Error("it is still down")
		}
	})
}

func TestChangeThatNeedsMoreThanAPartialObservation(t *testing.T) {
	const up = interface_types.IF_STATUS_API_FLAG_ADMIN_UP
	for name, c := range map[string]struct {
		meanwhile func(r *router, next *intent.End)
		status    string
	}{
		"after an interface has come": {func(r *router, next *intent.End) {
			r.subByHand(r.ports[1], 7, next.Access.Outer)
		}, "conflict"},
		"when there is something to do for a line that the document does not change": {func(r *router, _ *intent.End) {
			r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: r.index(r.ports[2]), Flags: up})
		}, "verified"},
		"when the document changes nothing": {func(r *router, next *intent.End) { *next = intent.End{} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryVPP(t, func(t *testing.T, r *router) {
				first, waits, next := vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[2]), vxlanEnd(3, r.ports[1])
				r.must(&interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: r.index(r.ports[2]), Tag: "shut by the NOC"})
				r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: r.index(r.ports[2])})
				session := r.countReads()
				r.put([]intent.End{first, waits})
				r.repair(t.Context())
				session.all = 0
				c.meanwhile(r, &next)
				present := []intent.End{first, waits}
				if next != (intent.End{}) {
					present = append(present, next)
				}
				outcome := r.put(present)
				if session.all == 0 {
					t.Error("not all interfaces were read")
				}
				if c.status != "" {
					if e := outcome.of(t, next.Key); e.Status != c.status {
						t.Errorf("the new line is %+v %+v", e, e.Reason)
					}
				}
				if off := r.fieldsOff(); len(off) != 0 {
					t.Errorf("left to do: %v", off)
				}
			})
		})
	}
}
