package converge

import (
	"context"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/plan"
	"longline.dev/agent/internal/vpp"
)

func refusedOf(e intent.End) *Outcome {
	return &Outcome{Applied: true, Ends: []End{
		{Key: e.Key, Status: "failed", Reason: &plan.Reason{Status: "failed", Code: "vpp_refused"}},
	}}
}

func TestPauseOfARefusedEndDoublesEachTime(t *testing.T) {
	p, now := make(backoff), time.Unix(1_790_000_000, 0)
	end := vxlanEnd(1, "cust0")
	in := &intent.Intent{Present: []intent.End{end}}
	var waits []time.Duration
	for range 9 {
		p.note(in, refusedOf(end), nil, now)
		wait := p[end.Key].until.Sub(now)
		if p.withheld(in, now.Add(wait-1))[end.Key] == nil {
			t.Fatalf("tried again before %s were over", wait)
		}
		if now = now.Add(wait); p.withheld(in, now)[end.Key] != nil {
			t.Fatalf("still waiting after %s", wait)
		}
		waits = append(waits, wait)
	}
	for i, seconds := range []int{5, 10, 20, 40, 80, 160, 300, 300, 300} {
		if waits[i] != time.Duration(seconds)*time.Second {
			t.Fatalf("waited %v", waits)
		}
	}
}

func TestChangedEndIsTriedAtOnce(t *testing.T) {
	p, now := make(backoff), time.Unix(1_790_000_000, 0)
	end := vxlanEnd(1, "cust0")
	p.note(&intent.Intent{Present: []intent.End{end}}, refusedOf(end), nil, now)
	end.Revision++
	if p.withheld(&intent.Intent{Present: []intent.End{end}}, now)[end.Key] != nil {
		t.Error("a new revision waits for the failure of the old one")
	}
	if p.withheld(&intent.Intent{Removed: []intent.Tombstone{tombstone(end)}}, now)[end.Key] != nil {
		t.Error("the removal waits for the failure of the creation")
	}
}

func TestSuccessOrRemovalEndsThePause(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	end := vxlanEnd(1, "cust0")
	in := &intent.Intent{Present: []intent.End{end}}
	for why, outcome := range map[string]*Outcome{
		"it worked":       {Applied: true, Ends: []End{{Key: end.Key, Status: "verified"}}},
		"no longer named": {Applied: true},
	} {
		p := make(backoff)
		p.note(in, refusedOf(end), nil, now)
		if p.note(in, outcome, nil, now); len(p) != 0 {
			t.Errorf("%s: %v", why, p)
		}
	}
	p := make(backoff)
	p.note(in, refusedOf(end), nil, now)
	if p.note(in, unavailable(in, ErrNoVPP), nil, now); len(p) != 1 {
		t.Error("a VPP that is away made the agent forget what it refused")
	}
}

// refusing is a session to a VPP that refuses to create sub-interfaces with one VLAN.
type refusing struct {
	*vpp.Session
	vlan     uint16
	requests int
}

func (r *refusing) Calls(ctx context.Context, requests []api.Message) ([]api.Message, error) {
	var pass []api.Message
	var refused []int
	for i, request := range requests {
		if sub, ok := request.(*interfaces.CreateSubif); ok && sub.OuterVlanID == r.vlan {
			r.requests++
			refused = append(refused, i)
			continue
		}
		pass = append(pass, request)
	}
	answered, err := r.Session.Calls(ctx, pass)
	if err != nil {
		return nil, err
	}
	replies := make([]api.Message, 0, len(requests))
	for i := range requests {
		if len(refused) > 0 && refused[0] == i {
			refused = refused[1:]
			replies = append(replies, &interfaces.CreateSubifReply{Retval: -1})
			continue
		}
		replies, answered = append(replies, answered[0]), answered[1:]
	}
	return replies, nil
}

func TestRefusedEndDoesNotDelayOthersAndIsNotTriedWithThem(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		clock := time.Now()
		r.now = func() time.Time { return clock }
		bad := vxlanEnd(1, r.ports[0])
		vpp := &refusing{Session: r.session, vlan: bad.Access.Outer}
		r.Attach(vpp)
		present := []intent.End{bad}
		for n := 2; n < 6; n++ {
			good := vxlanEnd(n, r.ports[0])
			present = append(present, good)
			outcome := r.put(present)
			if e := outcome.of(t, bad.Key); e.Status != "failed" || e.Reason.Retval != -1 {
				t.Fatalf("the refused end: %+v %+v", e, e.Reason)
			}
			if e := outcome.of(t, good.Key); e.Status != "verified" {
				t.Fatalf("the good end: %+v %+v", e, e.Reason)
			}
		}
		if vpp.requests != 1 {
			t.Errorf("requested %d times within a moment", vpp.requests)
		}
		if r.repair(t.Context()); vpp.requests != 1 {
			t.Errorf("the background check requested it again immediately")
		}
		clock = clock.Add(firstRetry)
		if r.repair(t.Context()); vpp.requests != 2 {
			t.Errorf("requested %d times after the pause", vpp.requests)
		}
		vpp.vlan = 0
		clock = clock.Add(2 * firstRetry)
		r.repair(t.Context())
		stored, _ := r.store.Current()
		if left, _, err := r.Plan(t.Context(), stored); err != nil || len(left.Ops) != 0 {
			t.Errorf("%v, left to do: %+v", err, left.Ops)
		}
	})
}
