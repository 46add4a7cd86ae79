package converge

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.fd.io/govpp/api"

	"longline.dev/agent/internal/intent"
)

// interrupted is a session that reports the first change of VPP and waits before it sends it.
type interrupted struct {
	Session
	reached chan struct{} // closed before the first change is sent
	goOn    chan struct{} // the change is sent when this is closed
	done    bool
}

func (s *interrupted) Calls(ctx context.Context, requests []api.Message) ([]api.Message, error) {
	if isChange(requests) && !s.done {
		s.done = true
		close(s.reached)
		<-s.goOn
	}
	return s.Session.Calls(ctx, requests)
}

func TestFinishWorkWaitsForTheConvergeAndRefusesOtherWork(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		lines := []intent.End{vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[1])}
		r.put(lines).mustAllBe(t, "verified")
		for n := range lines {
			lines[n].Tunnel.VNI += 500 // another key: both are deleted and created again
			lines[n].Revision++
		}
		stored := &interrupted{Session: r.session, reached: make(chan struct{}), goOn: make(chan struct{})}
		r.Attach(stored)
		changed := r.nextIntent(lines)
		var outcome *Outcome
		var failed error
		put := make(chan struct{})
		go func() {
			defer close(put)
			outcome, failed = r.Put(t.Context(), changed, "")
		}()
		<-stored.reached

		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := r.FinishWork(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while VPP is being changed, FinishWork returns %v", err)
		}
		finished := make(chan error, 1)
		go func() { finished <- r.FinishWork(context.Background()) }()
		close(stored.goOn)
		if err := <-finished; err != nil {
			t.Error(err)
		}
		if <-put; failed != nil {
			t.Fatal(failed)
		}
		outcome.mustAllBe(t, "verified")

		before := r.writes()
		in, _ := r.store.Current()
		if _, err := r.Put(t.Context(), &intent.Intent{Router: "rhino", Generation: in.Generation + 1}, ""); !errors.Is(err, ErrStopping) {
			t.Errorf("a new intent: %v", err)
		}
		if _, _, err := r.Plan(t.Context(), in); !errors.Is(err, ErrStopping) {
			t.Errorf("a plan: %v", err)
		}
		if _, err := r.tracer.Trace(t.Context(), lines[0].VLL, 1, time.Second); !errors.Is(err, ErrStopping) {
			t.Errorf("a trace: %v", err)
		}
		if r.Converge(t.Context()) != nil || r.repair(t.Context()) || r.writes() != before {
			t.Error("VPP was changed after the engine had finished")
		}
		if stored, _ := r.store.Current(); stored != in {
			t.Error("an intent was stored after the stop")
		}
	})
}

func TestKilledConvergeIsFinishedUnderReportOnly(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.options.Repair = ReportOnly
		r.put([]intent.End{vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[1])}).mustAllBe(t, "verified")
		stored, _ := r.store.Current()
		r.disconnect(r.ports[0] + ".101")
		r.disconnect(r.ports[1] + ".102")

		// The portal sends the same generation again, which repairs foreign changes; then the agent is
		// killed.
		r.Attach(&faulty{Session: r.session, left: 1, strike: func([]api.Message) {}})
		if outcome, err := r.Put(t.Context(), stored, ""); err != nil || outcome.Applied {
			t.Fatalf("the converge was not cut off: %+v, %v", outcome, err)
		}
		r.open()
		r.options.Repair = ReportOnly
		r.convergeNewConnection(t.Context())
		if p, err := r.ObservedState(t.Context()); err != nil || len(p.Plan.Ops) > 0 {
			t.Errorf("after the start %d changes are left, %v", len(p.Plan.Ops), err)
		}
	})
}
