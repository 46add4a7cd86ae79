package report

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"longline.dev/agent/internal/spool"
)

// While the portal does not accept reports, the agent pauses between two attempts. The pause doubles after
// each attempt. The agent shortens each pause at random by up to half, so that a thousand agents do not retry
// simultaneously.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// Poster sends one report and decodes the response. It returns *RefusedError or another error. After another
// error, the report may be sent again.
type Poster interface {
	Post(ctx context.Context, kind string, report, answer any) error
}

// deliverer sends the records of a spool to the portal, in order. If the agent is killed before it has
// recorded a delivery on disk, it later sends the same records again. The portal detects duplicates by boot
// ID and sequence number.
type deliverer struct {
	kind  string
	spool *spool.Spool
	to    Poster
	log   *slog.Logger
	now   func() time.Time
	// compose returns a report of the first records, and the number of records in it.
	compose func([]spool.Record) (report any, n int, err error)
	// most is the maximum number of records in the next report. It is less than batch if an earlier report
	// was too large or too slow. 0 means batch.
	most int
	// unnoted is true while the agent cannot record deliveries on disk.
	unnoted bool
	// taken is the time when the portal last accepted a report (ms since the Unix epoch), 0 for never.
	taken atomic.Int64
}

func (d *deliverer) run(ctx context.Context) {
	wait := firstPause
	for ctx.Err() == nil {
		sent, err := d.deliverOne(ctx)
		switch {
		case err != nil:
			d.log.Warn("report not taken; it is kept", "kind", d.kind, "waiting", d.spool.Waiting(), "retry_within", wait, "error", err)
			pause(ctx, wait/2+rand.N(wait/2))
			wait = min(2*wait, longestPause)
		case !sent:
			select {
			case <-ctx.Done():
			case <-d.spool.Added():
			}
		default:
			wait = firstPause
		}
	}
}

// deliverOne sends one report. It returns false if there is nothing to send. If the portal refuses a report
// of several records, or does not accept a report in time, the next report has half as many records.
// deliverOne drops a record only if the portal refuses a report of this record alone, or if the record cannot
// be decoded.
func (d *deliverer) deliverOne(ctx context.Context) (bool, error) {
	records, err := d.spool.Oldest(cmp.Or(d.most, batch))
	if err != nil || len(records) == 0 {
		return false, err
	}
	report, n, err := d.compose(records)
	if err != nil {
		d.log.Error("a stored report cannot be read and is dropped", "kind", d.kind, "error", err)
		d.take(records[:1], true)
		return true, nil
	}
	var answer struct{} // the agent does not use the response, which contains the number of new records
	err = d.to.Post(ctx, d.kind, report, &answer)
	_, refused := errors.AsType[*RefusedError](err)
	switch {
	case refused && n > 1:
		d.log.Warn("report refused; its halves are sent", "kind", d.kind, "records", n, "error", err)
		d.most = n / 2
		return true, nil
	case refused:
		d.log.Error("record refused permanently and dropped", "kind", d.kind, "error", err)
	case err != nil:
		if isTimeout(err) {
			d.most = max(1, n/2)
		}
		return false, err
	default:
		d.taken.Store(d.now().UnixMilli())
	}
	d.most = min(2*cmp.Or(d.most, batch), batch)
	d.take(records[:n], refused)
	return true, nil
}

// isTimeout reports whether a report failed because the portal, or a proxy in front of the portal, was too
// slow.
func isTimeout(err error) bool {
	var slow interface{ Timeout() bool }
	status, is := errors.AsType[*statusError](err)
	return errors.As(err, &slow) && slow.Timeout() ||
		is && slices.Contains([]int{http.StatusRequestTimeout, http.StatusGatewayTimeout}, status.Status)
}

// take removes delivered or refused records from the spool. If the removal cannot be recorded on disk, the
// agent sends some of these records again after a restart. If refused is true, the records count as dropped.
func (d *deliverer) take(records []spool.Record, refused bool) {
	err := d.spool.Take(records, refused)
	switch {
	case err != nil && !d.unnoted:
		d.log.Error("deliveries cannot be recorded on disk; a restart would send reports again", "kind", d.kind, "error", err)
	case err == nil && d.unnoted:
		d.log.Info("deliveries are recorded on disk again", "kind", d.kind)
	}
	d.unnoted = err != nil
}

// Dropped returns the numbers of samples and of events that the portal will never receive. It returns nil if
// there is no portal.
func (r *Reporter) Dropped() map[string]int64 {
	return r.ofEach(func(d *deliverer) int64 { return d.spool.Dropped() })
}

// Waiting returns the numbers of samples and of events that the portal has not accepted yet. It returns nil
// if there is no portal.
func (r *Reporter) Waiting() map[string]int64 {
	return r.ofEach(func(d *deliverer) int64 { return d.spool.Waiting() })
}

func (r *Reporter) ofEach(figure func(*deliverer) int64) map[string]int64 {
	if r.client == nil {
		return nil
	}
	return map[string]int64{r.counters.kind: figure(r.counters), r.events.kind: figure(r.events)}
}

// Taken returns the time when the portal last accepted a report of each kind. It has no entry for a kind of
// which the portal has not accepted any report. It returns nil if there is no portal.
func (r *Reporter) Taken() map[string]time.Time {
	if r.client == nil {
		return nil
	}
	ms := r.ofEach(func(d *deliverer) int64 { return d.taken.Load() })
	ms["observed"] = r.observedTaken.Load()
	maps.DeleteFunc(ms, func(_ string, at int64) bool { return at == 0 })
	taken := make(map[string]time.Time, len(ms))
	for kind, at := range ms {
		taken[kind] = time.UnixMilli(at)
	}
	return taken
}
