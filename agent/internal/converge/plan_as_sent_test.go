package converge

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"go.fd.io/govpp/api"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/plan"
)

// change is a message that changes VPP, with its interface. The interface is observe.NoIndex if a plan
// cannot know it, or if the message uses another key.
type change struct {
	message string
	index   uint32
}

// writes is a session that records the changes in order.
type writes struct {
	Session
	sent []change
}

func (w *writes) Calls(ctx context.Context, requests []api.Message) ([]api.Message, error) {
	if isChange(requests) {
		for _, request := range requests {
			sent := change{request.GetMessageName(), observe.NoIndex}
			for _, field := range []string{"SwIfIndex", "RxSwIfIndex"} {
				if value := reflect.ValueOf(request).Elem().FieldByName(field); value.IsValid() {
					sent.index = uint32(value.Uint())
				}
			}
			w.sent = append(w.sent, sent)
		}
	}
	return w.Session.Calls(ctx, requests)
}

// planned returns the changes of a plan in the same form.
func planned(p *plan.Plan) (changes []change) {
	for _, op := range p.Ops {
		index := op.Action.Target().Index
		switch op.Action.(type) {
		case plan.DeleteTunnel, plan.AddTable, plan.SetSession: // they name a tunnel's key or a table, and no interface
			index = observe.NoIndex
		}
		changes = append(changes, change{op.Message(), index})
	}
	return changes
}

// same compares changes. A plan does not know the index of an interface that does not exist yet.
func same(sent, planned change) bool {
	return sent.message == planned.message && (planned.index == observe.NoIndex || sent.index == planned.index)
}

// mustDoAsPlanned plans the next generation, applies it and compares.
func (r *router) mustDoAsPlanned(t *testing.T, session Session, present []intent.End, removed ...intent.Tombstone) *plan.Plan {
	t.Helper()
	generation := int64(1)
	if stored, _ := r.store.Current(); stored != nil {
		generation = stored.Generation + 1
	}
	p, _, err := r.Plan(t.Context(), &intent.Intent{Router: "rhino", Generation: generation, Present: present, Removed: removed})
	if err != nil {
		t.Fatal(err)
	}
	noted := &writes{Session: session}
	r.mu.Lock()
	r.Engine.session = noted
	r.mu.Unlock()
	r.put(present, removed...)
	if want := planned(p); !slices.EqualFunc(noted.sent, want, same) {
		t.Errorf("sent\n%v\nplanned\n%v", noted.sent, want)
	}
	r.mu.Lock()
	r.Engine.session = session
	r.mu.Unlock()
	return p
}

// TestConvergeSendsThePlan creates each kind of line, gives it another key, changes it in place and removes
// it.
func TestConvergeSendsThePlan(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		for _, w := range r.wires() {
			for _, tagging := range []intent.Tagging{intent.Untagged, intent.Dot1q, intent.QinQ, intent.Dot1ad} {
				t.Run(fmt.Sprintf("%s/%s", w.name(), tagging), func(t *testing.T) {
					ends := r.ends(w, tagging)
					var gone []intent.Tombstone
					for i := range ends {
						ends[i].Bandwidth = profile
						gone = append(gone, tombstone(ends[i]))
					}
					changed := func(do func(*intent.End)) []intent.End {
						next := slices.Clone(ends)
						for i := range next {
							do(&next[i])
						}
						return next
					}
					r.mustDoAsPlanned(t, r.session, ends)
					r.mustDoAsPlanned(t, r.session, changed(func(e *intent.End) { e.Revision, e.AdminUp, e.Bandwidth = 2, false, intent.Bandwidth{} }))
					r.mustDoAsPlanned(t, r.session, changed(func(e *intent.End) {
						if e.Revision = 3; e.Access.Tagging != intent.Untagged {
							e.Access.Outer++
						}
						if e.Tunnel.VNI != 0 {
							e.Tunnel.VNI++
						}
					}))
					r.mustDoAsPlanned(t, r.session, nil, gone...)
				})
			}
		}
	})
}

// TestPlanOmitsRefusedEnds: the plan omits ends that wait after a refusal, like the next intent, and says
// so.
func TestPlanOmitsRefusedEnds(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		bad, good := vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[0])
		session := &refusing{Session: r.session, vlan: bad.Access.Outer}
		r.Attach(session)
		r.put([]intent.End{bad})
		p := r.mustDoAsPlanned(t, session, []intent.End{bad, good})
		if reason := p.Blocked[bad.Key]; reason == nil || reason.Code != "vpp_refused" || len(p.Ops) == 0 {
			t.Errorf("the plan has %d operations and says of the refused end %+v", len(p.Ops), reason)
		}
		stored, _ := r.store.Current()
		if again, _, err := r.Plan(t.Context(), stored); err != nil || again.Blocked[bad.Key] != nil || len(again.Ops) == 0 {
			t.Errorf("%v; the same generation again tries everything, and the plan says %+v", err, again)
		}
	})
}
