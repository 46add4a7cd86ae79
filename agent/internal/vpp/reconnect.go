package vpp

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"
)

const (
	firstWait = 50 * time.Millisecond
	longWait  = 2 * time.Second
)

// ErrHangs says that VPP accepts connections but does not reply.
var ErrHangs = errors.New("VPP hangs: it accepts connections and answers nothing; restart it")

// Keeper contains the functions that KeepConnected calls.
type Keeper struct {
	Log *slog.Logger
	// Refused is called after every failed attempt and while VPP hangs. It receives the reason why there is
	// no session. It receives nil on success.
	Refused func(error)
	// Noticed receives the names of dead API clients whose end VPP has not noticed.
	Noticed func(names []string)
	// Use works with a session until its context ends. The context ends with the session.
	Use func(context.Context, *Session)
}

// KeepConnected keeps a session open until ctx ends. It dials, calls Use, waits for the end of the session,
// and starts again. The pause between failed attempts is at most 2 s.
func (d Dialer) KeepConnected(ctx context.Context, k Keeper) {
	wait := firstWait
	for ctx.Err() == nil {
		session, err := d.dialPatiently(ctx, k.Refused)
		k.Refused(err)
		if err != nil {
			k.Log.Warn("VPP cannot be used", "error", err, "retry_within", wait)
			pause(ctx, wait/2+rand.N(wait/2)) // the pause is random, so that two agents that exclude each other do not retry simultaneously
			wait = min(2*wait, longWait)
			continue
		}
		wait = firstWait
		k.Log.Info("connected to VPP", "version", session.info.Version, "pid", session.info.PID, "boot_ms", session.info.BootMS)
		if session.info.BootMS == 0 {
			k.Log.Warn("VPP's boot time cannot be read: no counters are reported, and no object is adopted after a crash")
		}
		go d.dropDeadClients(session, func(names []string) {
			k.Log.Warn("VPP had not noticed the end of API clients", "clients", names)
			k.Noticed(names)
		})
		serve(ctx, session, k.Use)
		k.Log.Warn("connection to VPP ended", "error", session.Err())
	}
}

// dialPatiently opens a session, and waits without a time limit until VPP responds. It makes only one
// connection, because a VPP that hangs would keep every further connection open. While VPP hangs, it calls
// the function refused with ErrHangs.
func (d Dialer) dialPatiently(ctx context.Context, refused func(error)) (session *Session, err error) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		session, err = d.dial(ctx, ctx)
	}()
	timer := time.NewTimer(d.Timeout)
	defer timer.Stop()
	for {
		select {
		case <-ended:
			return session, err
		case <-timer.C:
			refused(ErrHangs)
		}
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
