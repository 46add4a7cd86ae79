package converge

import (
	"context"
	"time"

	"longline.dev/agent/internal/vpp"
)

const (
	// soonest is the pause between a change and the next comparison. It is short, because an end
	// may wait for a port that appears seconds after a restart of VPP.
	soonest = 2 * time.Second
	// driftEvery is the longest pause between two comparisons. It applies when nothing has changed
	// for some time.
	driftEvery = 30 * time.Second
	// settle is the pause between an interface event and the observation. The agent waits because
	// events come in groups. crowded is the shortest pause between an observation and the next
	// observation that an event causes.
	settle  = 100 * time.Millisecond
	crowded = time.Second
)

// pace is the pause before the next comparison. After a change, it has the value of soonest. It doubles after
// each comparison without a change, up to driftEvery.
type pace time.Duration

func (p *pace) changed() { *p = pace(soonest) }

func (p *pace) unchanged() { *p = min(2**p, pace(driftEvery)) }

// Serve works with one session until ctx ends. It converges at once, because VPP may have restarted and lost
// everything. Then it observes, compares and repairs: after interface events, after a request of Rebuild, and
// otherwise after a pause of at most 30 s (pace).
func (e *Engine) Serve(ctx context.Context, session *vpp.Session) {
	e.eventsWaiting = func() bool { return len(session.Events()) > 0 }
	e.Attach(session)
	defer func() {
		e.Attach(nil)
		e.notify()
	}()
	e.readPaths(ctx)
	go e.options.Paths.follow(ctx, session.PathEvents())
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
				if observedAt = time.Now(); repaired || waits { // the object that an end waits for may appear soon, and not every change causes an event
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
