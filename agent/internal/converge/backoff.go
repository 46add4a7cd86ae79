package converge

import (
	"time"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/plan"
)

// After VPP has refused a change for an end, the agent tries the end again after firstRetry. After each
// further refusal it doubles the pause, up to longestRetry. Other ends do not wait.
const (
	firstRetry   = 5 * time.Second
	longestRetry = 5 * time.Minute
)

// backoff contains the ends for which VPP refused a change.
type backoff map[intent.Key]refusal

type refusal struct {
	wanted intent.End // zero for a removal
	reason *plan.Reason
	wait   time.Duration
	until  time.Time
}

// withheld returns the ends whose pause is not over, each with the reason of its refusal. An end whose intent
// has changed since the refusal is not withheld.
func (b backoff) withheld(in *intent.Intent, now time.Time) map[intent.Key]*plan.Reason {
	waiting := make(map[intent.Key]*plan.Reason)
	for _, end := range in.Present {
		if r, refused := b[end.Key]; refused && now.Before(r.until) && sameEnd(r.wanted, end) {
			waiting[end.Key] = r.reason
		}
	}
	for _, tombstone := range in.Removed {
		if r, refused := b[tombstone.Key]; refused && now.Before(r.until) && r.wanted == (intent.End{}) {
			waiting[tombstone.Key] = r.reason
		}
	}
	return waiting
}

func sameEnd(a, b intent.End) bool { return a == b }

// note records the results of an attempt. The attempt did not include the withheld ends.
func (b backoff) note(in *intent.Intent, o *Outcome, withheld map[intent.Key]*plan.Reason, now time.Time) {
	if !o.Applied {
		return // without a connection to VPP, nothing was refused
	}
	wanted := make(map[intent.Key]intent.End)
	for _, end := range o.Ends {
		if isRefusal(end) {
			wanted[end.Key] = intent.End{}
		}
	}
	if len(wanted) > 0 {
		for _, end := range in.Present {
			if _, refused := wanted[end.Key]; refused {
				wanted[end.Key] = end
			}
		}
	}
	for _, end := range o.Ends {
		intended, refused := wanted[end.Key]
		if !refused {
			delete(b, end.Key)
			continue
		}
		if withheld[end.Key] != nil {
			continue
		}
		wait := firstRetry
		if before, again := b[end.Key]; again && sameEnd(before.wanted, intended) {
			wait = min(2*before.wait, longestRetry)
		}
		b[end.Key] = refusal{intended, end.Reason, wait, now.Add(wait)}
	}
	b.forget(o)
}

// forget removes ends that the intent no longer names.
func (b backoff) forget(o *Outcome) {
	if len(b) == 0 {
		return
	}
	named := make(map[intent.Key]bool, len(o.Ends))
	for _, end := range o.Ends {
		named[end.Key] = true
	}
	for key := range b {
		if !named[key] {
			delete(b, key)
		}
	}
}

// isRefusal reports whether VPP refused a request for the end, or did not show the change when the agent read
// the end back.
func isRefusal(end End) bool {
	return end.Reason != nil && (end.Status == "failed" || end.Reason.Code == "verify_mismatch")
}
