package converge

import (
	"time"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/plan"
)

// An end that VPP refused is tried again after firstRetry, then after twice as long each time, and at the
// latest after longestRetry. No other end waits for it.
const (
	firstRetry   = 5 * time.Second
	longestRetry = 5 * time.Minute
)

// backoff remembers, by end, what was refused.
type backoff map[intent.Key]refusal

type refusal struct {
	wanted intent.End // zero for a removal
	reason *plan.Reason
	wait   time.Duration
	until  time.Time
}

// withheld are the ends that are not to be tried yet. An end that is wanted otherwise now is tried at once.
func (b backoff) withheld(in *intent.Intent, now time.Time) map[intent.Key]*plan.Reason {
	waiting := make(map[intent.Key]*plan.Reason)
	for _, end := range in.Present {
		if r, refused := b[end.Key]; refused && now.Before(r.until) && sameWish(r.wanted, end) {
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

func sameWish(a, b intent.End) bool { return a == b }

// note learns from what came of an attempt; withheld ends were not attempted.
func (b backoff) note(in *intent.Intent, o *Outcome, withheld map[intent.Key]*plan.Reason, now time.Time) {
	if !o.Applied {
		return // VPP is away: that is nobody's refusal
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
		wish, refused := wanted[end.Key]
		if !refused {
			delete(b, end.Key)
			continue
		}
		if withheld[end.Key] != nil {
			continue
		}
		wait := firstRetry
		if before, again := b[end.Key]; again && sameWish(before.wanted, wish) {
			wait = min(2*before.wait, longestRetry)
		}
		b[end.Key] = refusal{wish, end.Reason, wait, now.Add(wait)}
	}
	b.forget(o)
}

// forget drops what the intent no longer names.
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

// isRefusal: VPP was asked and did not do it, or did not show it when it was read back.
func isRefusal(end End) bool {
	return end.Reason != nil && (end.Status == "failed" || end.Reason.Code == "verify_mismatch")
}
