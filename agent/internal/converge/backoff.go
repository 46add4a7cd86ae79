package converge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
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

// The pause between two repairs of the same field of the same object starts at firstRetry and doubles after
// each repair, up to longestRetry. Without these pauses, another client that undoes every repair
// would keep the agent and VPP busy permanently.
//
// If a field has not changed for the duration calm, its next change counts as its first change.
// Configuration tools usually run every half hour. calm is longer than half an hour, so the agent
// also detects a tool that undoes its repairs.
const calm = time.Hour

// Contested is a field that another client has changed again after a repair. Drift.Actual is the last value
// that the other client set.
type Contested struct {
	plan.Drift
	Since   time.Time // time of the first repair
	Repairs int
}

// contests contains each repaired field until the field has not changed for the duration calm.
type contests map[contestedField]*contest

// contestedField is a field of an object. end is set only for an object that does not exist yet,
// because such an object has no unique name.
type contestedField struct {
	object, field string
	end           intent.Key
}

type contest struct {
	Contested
	end       intent.Key
	revision  int32 // of the wanted end, 0 for its removal
	wait      time.Duration
	until     time.Time // the earliest time of the next repair
	changedAt time.Time // time of the last detected change
	undone    bool      // the field was changed again after a repair
}

func contestedFieldOf(op plan.Op) contestedField {
	at := contestedField{object: op.Drift.Object, field: op.Drift.Field}
	if op.Action.Target().Index == observe.NoIndex {
		at.end = op.End
	}
	return at
}

// found records the fields that have changed again after a repair. It returns the operations on fields for
// which this is the first change after a repair.
func (c contests) found(ops []plan.Op, now time.Time) (first []plan.Op) {
	for _, op := range ops {
		if known := c[contestedFieldOf(op)]; known != nil && known.Desired == op.Drift.Desired {
			if !known.undone {
				first = append(first, op)
			}
			known.undone, known.changedAt, known.Drift = true, now, op.Drift
		}
	}
	return first
}

// waiting returns the ends that have to wait: all their differences are in fields whose pause after a repair
// is not over. An end with any other difference is repaired at once and completely.
func (c contests) waiting(ops []plan.Op, now time.Time) map[intent.Key]*plan.Reason {
	waiting, atOnce := make(map[intent.Key]*plan.Reason), make(map[intent.Key]bool)
	for _, op := range ops {
		known := c[contestedFieldOf(op)]
		if known == nil || known.Desired != op.Drift.Desired || !now.Before(known.until) {
			atOnce[op.End] = true
		} else if waiting[op.End] == nil {
			waiting[op.End] = known.reason()
		}
	}
	maps.DeleteFunc(waiting, func(end intent.Key, _ *plan.Reason) bool { return atOnce[end] })
	return waiting
}

func (c *contest) reason() *plan.Reason {
	return &plan.Reason{
		Status: "pending", Code: "contested", Object: c.Object,
		Message: fmt.Sprintf("another client changes %s of %s to %q again after each repair, so the agent repairs it less and less often",
			c.Field, c.Object, c.Actual),
	}
}

// repaired records the fields that these operations repair. It omits a field if the field was not
// repaired before and its end is not in drifted.
func (c contests) repaired(in *intent.Intent, ops []plan.Op, drifted map[intent.Key][]plan.Drift, now time.Time) {
	noted := make(map[contestedField]bool)
	for _, op := range ops {
		at := contestedFieldOf(op)
		known := c[at]
		if op.Follows || noted[at] || known == nil && drifted[op.End] == nil {
			continue
		}
		noted[at] = true
		if known == nil || known.Desired != op.Drift.Desired {
			known = &contest{Contested: Contested{Drift: op.Drift, Since: now}}
			c[at] = known
		}
		known.end, known.revision = op.End, revisionOf(in, op.End)
		known.wait = min(max(2*known.wait, firstRetry), longestRetry)
		known.until, known.changedAt, known.Drift = now.Add(known.wait), now, op.Drift
		known.Repairs++
	}
}

// now returns the contested fields of each end, sorted by object and field. It first forgets each field that
// has not changed for the duration calm, and each field of an end that has a new revision.
func (c contests) now(in *intent.Intent, now time.Time) map[intent.Key][]Contested {
	contested := make(map[intent.Key][]Contested)
	for at, known := range c {
		switch {
		case now.Sub(known.changedAt) >= calm || known.revision != revisionOf(in, known.end):
			delete(c, at)
		case known.undone:
			contested[known.end] = append(contested[known.end], known.Contested)
		}
	}
	for _, fields := range contested {
		slices.SortFunc(fields, func(a, b Contested) int {
			return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Field, b.Field))
		})
	}
	return contested
}

func revisionOf(in *intent.Intent, key intent.Key) int32 {
	if end := endOf(in, key); end != nil {
		return end.Revision
	}
	return 0
}
