package converge

import (
	"testing"
	"time"

	interfaces "go.fd.io/govpp/binapi/interface"

	"longline.dev/agent/internal/intent"
)

func TestComparisonsSlowDownWhileNothingHappens(t *testing.T) {
	p := pace(soonest)
	var waits []time.Duration
	for range 6 {
		waits = append(waits, time.Duration(p))
		p.unchanged()
	}
	want := []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second}
	for i := range want {
		if waits[i] != want[i] {
			t.Fatalf("got %v, want %v", waits, want)
		}
	}
	if p.changed(); time.Duration(p) != soonest {
		t.Errorf("after a change %v", time.Duration(p))
	}
}

func TestEndIsBuiltWhenItsPortAppears(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		end := vxlanEnd(1, "loop7")
		outcome := r.put([]intent.End{end})
		if e := outcome.of(t, end.Key); e.Status != "pending" || e.Reason.Code != "unknown_interface" {
			t.Fatalf("got %+v %+v", e, e.Reason)
		}
		if r.repair(t.Context()) {
			t.Error("repaired without a port")
		}
		r.must(&interfaces.CreateLoopbackInstance{IsSpecified: true, UserInstance: 7})
		if !r.repair(t.Context()) {
			t.Error("the port came and nothing was done")
		}
		r.Converge(t.Context()).mustAllBe(t, "verified")
		if port := r.snapshot().ByName("loop7"); !port.AdminUp {
			t.Error("the port is down, so the VLL cannot be up")
		}
	})
}
