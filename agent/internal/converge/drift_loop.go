package converge

import (
	"context"
	"time"

	"longline.dev/agent/internal/vpp"
)

const (
	// soonest is the pause before VPP is compared again after something happened: a port that an end waits
	// for may follow a restart of VPP by seconds.
	soonest = 2 * time.Second
	// driftEvery is the pause when nothing happens.
	driftEvery = 30 * time.Second
	// settle is the pause between an interface event and the look at what it was about: events come in
	// crowds. Between two looks there is at least crowded.
	settle  = 100 * time.Millisecond
	crowded = time.Second
)

// pace is how long to wait for the next comparison: short after news, doubling while there are none.
type pace time.Duration

func (p *pace) news() { *p = pace(soonest) }

func (p *pace) quiet() { *p = min(2**p, pace(driftEvery)) }

// Serve works with one session until it ends: converge at once, because a VPP that was away may have
// restarted and keeps nothing, then look, compare and repair, at once after each interface event, when something is to
// be made anew, and every 30 s.
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
	wait, looked, news := pace(soonest), time.Now(), false
	due := looked.Add(soonest) // of the next quick observation
	timer := time.NewTimer(soonest)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-session.Events():
			e.noteEvent(uint32(event.SwIfIndex), len(session.Events()), cap(session.Events()))
			if !news {
				news = true
				timer.Reset(max(settle, crowded-time.Since(looked)))
			}
		case <-e.rebuildRequested:
			timer.Reset(0)
		case <-timer.C:
			if news && time.Now().Before(due) {
				repaired, waits := e.repairAfterEvents(ctx)
				if looked = time.Now(); repaired || waits { // what an end waits for may follow, and not every change is an event
					wait.news()
					due = looked.Add(time.Duration(wait))
				}
			} else {
				repaired := e.repair(ctx)
				if looked = time.Now(); repaired || news {
					wait.news()
				} else {
					wait.quiet()
				}
				due = looked.Add(time.Duration(wait))
			}
			if news {
				e.notify()
			}
			news = false
			timer.Reset(time.Until(due))
		}
	}
}
