package converge

import (
	"testing"

	interfaces "go.fd.io/govpp/binapi/interface"

	"longline.dev/agent/internal/intent"
)

// fieldsOff are the fields in which VPP differs from the held intent.
func (r *router) fieldsOff() map[string]bool {
	r.t.Helper()
	held, _ := r.store.Held()
	found, _, err := r.Look(r.t.Context(), held)
	if err != nil {
		r.t.Fatal(err)
	}
	fields := make(map[string]bool)
	for _, op := range found.Ops {
		fields[op.Drift.Field] = true
	}
	return fields
}

func TestHeldDriftIsReportedAndLeftUntilTheIntentIsSentAgain(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.Repair = Hold
		end := vxlanEnd(1, r.ports[0])
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: r.index(r.ports[0] + ".101"), Flags: 0})
		stillDown := func(when string) {
			t.Helper()
			if r.repair(t.Context()) || !r.fieldsOff()["admin_up"] {
				t.Errorf("%s: drift was repaired", when)
			}
		}
		stillDown("at once")
		r.attach(t.Context())
		stillDown("after a new connection")
		r.open()
		r.Repair = Hold
		r.attach(t.Context())
		stillDown("after a new start of the agent")
		held, _ := r.store.Held()
		outcome, err := r.Put(t.Context(), held)
		if err != nil {
			t.Fatal(err)
		}
		outcome.mustAllBe(t, "verified")
		if off := r.fieldsOff(); len(off) != 0 {
			t.Errorf("the intent was sent again, and these are still off: %v", off)
		}
	})
}

func TestUnderHoldWhatWaitedForItsPortIsStillBuilt(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.Repair = Hold
		drifted, waiting := vxlanEnd(1, r.ports[0]), vxlanEnd(2, "loop7")
		r.put([]intent.End{drifted, waiting})
		r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: r.index(r.ports[0] + ".101"), Flags: 0})
		r.must(&interfaces.CreateLoopbackInstance{IsSpecified: true, UserInstance: 7})
		if !r.repair(t.Context()) {
			t.Error("the port came and nothing was done")
		}
		if off := r.fieldsOff(); len(off) != 1 || !off["admin_up"] {
			t.Errorf("off: %v, want only the held drift", off)
		}
		if r.repair(t.Context()) {
			t.Error("drift was repaired after all")
		}
	})
}

func TestUnderHoldARestartedVPPIsFilledAgain(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.Repair = Hold
		r.put([]intent.End{vxlanEnd(1, r.ports[0])}).mustAllBe(t, "verified")
		r.restartVPP()
		r.attach(t.Context())
		if off := r.fieldsOff(); len(off) != 0 {
			t.Errorf("off after the restart: %v", off)
		}
	})
}
