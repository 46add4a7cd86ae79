package report

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"longline.dev/agent/internal/spool"
)

// The pauses while the portal does not take what it is sent: doubling, each shortened by up to half at
// random, so that a thousand agents do not come back at the same moment.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// Poster sends one report and reads the answer. Errors: *RefusedError, or anything after which the report
// may be sent again.
type Poster interface {
	Post(ctx context.Context, kind string, report, answer any) error
}

// forwarder empties a spool into the portal, in order. What was sent and not yet noted as taken on disk when the
// agent is killed is sent again: the portal knows duplicates by boot id and number.
type forwarder struct {
	kind  string
	spool *spool.Spool
	to    Poster
	log   *slog.Logger
	now   func() time.Time
	// compose makes one report of the first of these records, and says of how many.
	compose func([]spool.Record) (report any, n int, err error)
	// unnoted is true while the disk takes no note of what is taken.
	unnoted bool
	// taken is when the portal last took a report (ms since the Unix epoch), 0 for never.
	taken atomic.Int64
}

// run forwards until ctx ends.
func (f *forwarder) run(ctx context.Context) {
	wait := firstPause
	for ctx.Err() == nil {
		sent, err := f.step(ctx)
		switch {
		case err != nil:
			f.log.Warn("report not taken; it is kept", "kind", f.kind, "waiting", f.spool.Waiting(), "retry_within", wait, "error", err)
			pause(ctx, wait/2+rand.N(wait/2))
			wait = min(2*wait, longestPause)
		case !sent:
			select {
			case <-ctx.Done():
			case <-f.spool.Added():
			}
		default:
			wait = firstPause
		}
	}
}

// step sends one report; false when there is nothing to send.
func (f *forwarder) step(ctx context.Context) (bool, error) {
	records, err := f.spool.Oldest(batch)
	if err != nil || len(records) == 0 {
		return false, err
	}
	report, n, err := f.compose(records)
	if err != nil {
		f.log.Error("a stored report cannot be read and is dropped", "kind", f.kind, "error", err)
		f.take(records[:1], true)
		return true, nil
	}
	var answer struct{} // how many were new is the portal's business
	err = f.to.Post(ctx, f.kind, report, &answer)
	var refused *RefusedError
	switch {
	case errors.As(err, &refused):
		f.log.Error("report refused for good", "kind", f.kind, "records", n, "error", err)
	case err != nil:
		return false, err
	default:
		f.taken.Store(f.now().UnixMilli())
	}
	f.take(records[:n], refused != nil)
	return true, nil
}

// take gives up records for good in this run of the agent; where the disk takes no note of it, a restart sends some again.
func (f *forwarder) take(records []spool.Record, refused bool) {
	err := f.spool.Take(records, refused)
	switch {
	case err != nil && !f.unnoted:
		f.log.Error("the disk takes no note of what was reported; a restart would send it again", "kind", f.kind, "error", err)
	case err == nil && f.unnoted:
		f.log.Info("the disk takes note of what is reported again", "kind", f.kind)
	}
	f.unnoted = err != nil
}
