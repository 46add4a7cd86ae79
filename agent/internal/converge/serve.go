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
)

// pace is how long to wait for the next comparison: short after news, doubling while there are none.
type pace time.Duration

func (p *pace) news() { *p = pace(soonest) }

func (p *pace) quiet() { *p = min(2**p, pace(driftEvery)) }

// Serve works with one session until it ends: converge at once, because a VPP that was away may have
// restarted and keeps nothing, then compare and repair, soon after each interface event and every 30 s.
func (e *Engine) Serve(ctx context.Context, session *vpp.Session) {
	e.Attach(session)
	e.notify()
	defer func() {
		e.Attach(nil)
		e.notify()
	}()
	e.attach(ctx)
	wait := pace(soonest)
	timer := time.NewTimer(soonest)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-session.Events():
			e.notify()
			if wait != pace(soonest) {
				wait.news()
				timer.Reset(time.Duration(wait))
			}
		case <-timer.C:
			if e.repair(ctx) {
				wait.news()
			} else {
				wait.quiet()
			}
			timer.Reset(time.Duration(wait))
		}
	}
}
