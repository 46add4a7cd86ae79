package converge

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
)

// sessionWithLateMeddler is a session at which something happens once, as late as possible before the first change:
// when the ports are looked at once more, or when it is asked whether that is needed, or else with the change itself.
type sessionWithLateMeddler struct {
	*vpp.Session
	once   sync.Once
	happen func()
	sent   []string // changes
}

func (l *sessionWithLateMeddler) Dump(ctx context.Context, requests []api.Message, each func(api.Message)) error {
	for _, request := range requests {
		if ports, ok := request.(*interfaces.SwInterfaceDump); ok && ports.NameFilterValid {
			l.once.Do(l.happen)
		}
	}
	return l.Session.Dump(ctx, requests, each)
}

// epoch is the engine's, which asks once before it looks and once before it creates.
func (l *sessionWithLateMeddler) epoch(ask func(int64) (int64, error)) func(int64) (int64, error) {
	asked := 0
	return func(bootMS int64) (int64, error) {
		if asked++; asked == 2 {
			l.once.Do(l.happen)
		}
		return ask(bootMS)
	}
}

func (l *sessionWithLateMeddler) Calls(ctx context.Context, requests []api.Message) ([]api.Message, error) {
	if isChange(requests) {
		l.once.Do(l.happen)
		for _, request := range requests {
			l.sent = append(l.sent, request.GetMessageName())
		}
	}
	return l.Session.Calls(ctx, requests)
}

// TestAVLANThatSomebodyTakesAfterTheLookIsLeftToThem: a second sub-interface with the same VLAN is refused and
// stops the frames of the first. The agent writes to disk twice between its look and the create, which is time
// enough.
func TestAVLANThatSomebodyTakesAfterTheLookIsLeftToThem(t *testing.T) {
	for name, c := range map[string]struct{ later, stats bool }{
		"first intent, after a full look": {}, "later intent, after a quick look": {later: true},
		"first intent, with a stats segment": {stats: true}, "later intent, with a stats segment": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryVPP(t, func(t *testing.T, r *router) {
				beside, raced, free := vxlanEnd(5, r.ports[0]), vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[0])
				if c.later {
					r.put([]intent.End{beside}).mustAllBe(t, "verified")
				}
				session := &sessionWithLateMeddler{Session: r.session}
				if c.stats {
					r.Epoch = session.epoch(statseg.NewReopeningSegment(r.stats).Epoch)
				}
				theirs, before := r.ports[0]+".7", error(nil)
				session.happen = func() {
					r.lineByHand(r.ports[0], 7, raced.Access.Outer)
					if r.forwards != nil {
						before = r.forwards(theirs)
					}
				}
				r.mu.Lock()
				r.Engine.session = session // the same connection: what was seen through it stays seen
				r.mu.Unlock()
				outcome := r.put([]intent.End{beside, raced, free})
				if e := outcome.of(t, raced.Key); e.Status != "pending" || e.Reason.Object != describeInterface(r.snapshot().ByName(theirs)) {
					t.Errorf("the raced one is %+v %+v", e, e.Reason)
				}
				for _, other := range []intent.End{beside, free} {
					if e := outcome.of(t, other.Key); e.Status != "verified" {
						t.Errorf("%s is %+v %+v", other.Key, e, e.Reason)
					}
				}
				want := 2
				if c.later {
					want = 1
				}
				if got := countOf(session.sent, "create_subif"); got != want {
					t.Errorf("%d sub-interfaces were asked for, want %d", got, want)
				}
				if r.forwards != nil {
					if after := r.forwards(theirs); fmt.Sprint(after) != fmt.Sprint(before) {
						t.Errorf("of their frames: %v, before: %v", after, before)
					}
				}
				if e := r.Converge(t.Context()).of(t, raced.Key); e.Status != "conflict" || e.Reason.Code != "foreign_subinterface" {
					t.Errorf("then it is %+v %+v", e, e.Reason)
				}
			})
		})
	}
}

func countOf(names []string, name string) (n int) {
	for _, each := range names {
		if each == name {
			n++
		}
	}
	return n
}
