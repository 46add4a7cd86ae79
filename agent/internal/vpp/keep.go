package vpp

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"
)

const (
	firstWait = 50 * time.Millisecond
	longWait  = 2 * time.Second
)

// Keep holds a session open until ctx ends: it dials, hands the session to use, waits for its end, and
// begins again, waiting between failed attempts for at most 2 s. use is given a context that ends with
// the session; Keep waits for use to return. refused hears of every failed attempt, and of success with nil.
func (d Dialer) Keep(ctx context.Context, log *slog.Logger, refused func(error), use func(context.Context, *Session)) {
	wait := firstWait
	for ctx.Err() == nil {
		session, err := d.Dial(ctx)
		refused(err)
		if err != nil {
			log.Warn("VPP cannot be used", "error", err, "retry_within", wait)
			pause(ctx, wait/2+rand.N(wait/2)) // two agents that see each other must not come back together
			wait = min(2*wait, longWait)
			continue
		}
		wait = firstWait
		log.Info("connected to VPP", "version", session.info.Version, "pid", session.info.PID, "boot_ms", session.info.BootMS)
		if session.info.BootMS == 0 {
			log.Warn("VPP's boot time cannot be read: no counters, and nothing that a crash leaves behind is adopted")
		}
		serve(ctx, session, use)
		log.Warn("connection to VPP ended", "error", session.Err())
	}
}

func serve(ctx context.Context, session *Session, use func(context.Context, *Session)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, session.Close)
	defer stop()
	go func() {
		select {
		case <-session.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	use(ctx, session)
	session.Close()
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
