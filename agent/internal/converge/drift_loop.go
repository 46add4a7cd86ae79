package converge

import (
	"context"
	"time"

	"longline.dev/agent/internal/vpp"
)

const (
	// soonest is the pause before the next comparison after an event: a port that an end waits for may
	// appear seconds after a restart of VPP.
	soonest = 2 * time.Second
	// driftEvery is the pause while there are no events.
	driftEvery = 30 * time.Second
	// settle is the pause between an interface event and the observation, because events come in groups.
	// Between two observations there is at least the pause crowded.
	settle  = 100 * time.Millisecond
	crowded = time.Second
)

// pace is the pause before the next comparison: short after a change, doubling while there are none.
type pace time.Duration

func (p *pace) changed() { *p = pace(soonest) }

func (p *pace) unchanged() { *p = min(2**p, pace(driftEvery)) }

// Serve works with one session until it ends. It converges at once, because VPP may have restarted and lost
// everything. Then it observes, compares and repairs: after each interface event, after a request of
// Rebuild, and every 30 s.
func (e *Engine) Serve(ctx context.Context, session *vpp.Session) {
	e.eventsWaiting = func() bool { return len(session.Events()) > 0 }
	e.Attach(session)
	defer func() {
		e.Attach(nil)
		e.notify()
	}()
	e.readPaths(ctx)
	go e.followPaths(ctx, session.PathEvents())
	e.notify()
	e.tidyTests(ctx, session)
	e.convergeNewConnection(ctx)
	wait, observedAt, pending := pace(soonest), time.Now(), false
	due := observedAt.Add(soonest) // time of the next quick observation
	timer := time.NewTimer(soonest)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-session.Events():
			e.noteEvent(uint32(event.SwIfIndex), len(session.Events()), cap(session.Events()))
			if !pending {
				pending = true
				timer.Reset(max(settle, crowded-time.Since(observedAt)))
			}
		case <-e.rebuildRequested:
			timer.Reset(0)
		case <-timer.C:
			if pending && time.Now().Before(due) {
				repaired, waits := e.repairAfterEvents(ctx)
				if observedAt = time.Now(); repaired || waits { // the object that an end waits for may appear, and not every change causes an event
					wait.changed()
					due = observedAt.Add(time.Duration(wait))
				}
			} else {
				repaired := e.repair(ctx)
				if observedAt = time.Now(); repaired || pending {
					wait.changed()
				} else {
					wait.unchanged()
				}
				due = observedAt.Add(time.Duration(wait))
			}
			if pending {
				e.notify()
			}
			pending = false
			timer.Reset(time.Until(due))
		}
	}
}
