package report

import (
	"maps"
	"time"
)

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
