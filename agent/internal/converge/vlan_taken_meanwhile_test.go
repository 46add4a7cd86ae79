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

// sessionWithLateMeddler is a session with one foreign change, as late as possible before the agent's first change. It
// happens when the agent reads the ports again, when it reads the epoch to check whether that is needed, or at the
// change itself.
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

// epoch wraps the engine's function, which is called once before an observation and once before a creation.
func (l *sessionWithLateMeddler) epoch(read func(int64) (int64, error)) func(int64) (int64, error) {
	reads := 0
	return func(bootMS int64) (int64, error) {
		if reads++; reads == 2 {
			l.once.Do(l.happen)
		}
		return read(bootMS)
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

// TestVLANOfAForeignSubInterfaceAfterTheObservationIsNotTaken: VPP would refuse a second sub-interface with
// the same VLAN and stop the frames of the first. The agent writes to disk twice between its observation
// and the creation, which is time enough for a foreign change.
func TestVLANOfAForeignSubInterfaceAfterTheObservationIsNotTaken(t *testing.T) {
	for name, c := range map[string]struct{ later, stats bool }{
		"first intent, after a full observation": {}, "later intent, after a quick observation": {later: true},
		"first intent, with a stats segment": {stats: true}, "later intent, with a stats segment": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryVPP(t, func(t *testing.T, r *router) {
				existing, raced, free := vxlanEnd(5, r.ports[0]), vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[0])
				if c.later {
					r.put([]intent.End{existing}).mustAllBe(t, "verified")
				}
				session := &sessionWithLateMeddler{Session: r.session}
				if c.stats {
					r.options.Epoch = session.epoch(statseg.NewReopeningSegment(r.stats).Epoch)
				}
				theirs, before := r.ports[0]+".7", error(nil)
				session.happen = func() {
					r.lineByHand(r.ports[0], 7, raced.Access.Outer)
					if r.forwards != nil {
						before = r.forwards(theirs)
					}
				}
				r.mu.Lock()
				r.Engine.session = session // the same connection, so the engine keeps its observations
				r.mu.Unlock()
				outcome := r.put([]intent.End{existing, raced, free})
				if e := outcome.of(t, raced.Key); e.Status != "pending" || e.Reason.Object != describeInterface(r.snapshot().ByName(theirs)) {
					t.Errorf("the raced one is %+v %+v", e, e.Reason)
				}
				for _, other := range []intent.End{existing, free} {
					if e := outcome.of(t, other.Key); e.Status != "verified" {
						t.Errorf("%s is %+v %+v", other.Key, e, e.Reason)
					}
				}
				want := 2
				if c.later {
					want = 1
				}
				if got := countOf(session.sent, "create_subif"); got != want {
					t.Errorf("%d sub-interfaces were requested, want %d", got, want)
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
