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

// Between two repairs of the same field of the same object lies firstRetry, then twice as long each time, and at the
// most longestRetry: somebody who undoes every repair would else keep agent and VPP busy for ever. Once nobody has
// changed it for calm, the next change is a first one again. That is longer than the half hour at which tools that
// keep a configuration commonly run, so that they are found out too.
const calm = time.Hour

// Contested is a field that somebody else has changed again after it was repaired, and what it was last changed to.
type Contested struct {
	plan.Drift
	Since   time.Time // when it was first repaired
	Repairs int
}

// contests remember what was repaired until it has been calm.
type contests map[contestedField]*contest

// contestedField is a field of an object. What is not there yet has no name of its own: then the end is known, else it
// is zero.
type contestedField struct {
	object, field string
	end           intent.Key
}

type contest struct {
	Contested
	end      intent.Key
	revision int32 // of the end that is wanted, 0 for its removal
	wait     time.Duration
	until    time.Time // not repaired again before
	seen     time.Time // when it was last found changed
	undone   bool      // it was changed again after a repair
}

func contestedFieldOf(op plan.Op) contestedField {
	at := contestedField{object: op.Drift.Object, field: op.Drift.Field}
	if op.Action.Target().Index == observe.NoIndex {
		at.end = op.End
	}
	return at
}

// found notes what is changed again; the operations for which that is news.
func (c contests) found(ops []plan.Op, now time.Time) (news []plan.Op) {
	for _, op := range ops {
		if known := c[contestedFieldOf(op)]; known != nil && known.Desired == op.Drift.Desired {
			if !known.undone {
				news = append(news, op)
			}
			known.undone, known.seen, known.Drift = true, now, op.Drift
		}
	}
	return news
}

// waiting are the ends of which nothing differs but what was repaired lately. Whatever else differs is repaired at
// once, and all of its end with it.
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
		Message: fmt.Sprintf("somebody else changes %s of %s to %q again after each repair, so it is repaired ever more rarely",
			c.Field, c.Object, c.Actual),
	}
}

// repaired notes which of these operations repair drift of the ends named, or what was repaired before.
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
		known.until, known.seen, known.Drift = now.Add(known.wait), now, op.Drift
		known.Repairs++
	}
}

// now are those that others change again and again, by end and sorted. What has been calm, or is of an end that is
// wanted otherwise meanwhile, is forgotten.
func (c contests) now(in *intent.Intent, now time.Time) map[intent.Key][]Contested {
	contested := make(map[intent.Key][]Contested)
	for at, known := range c {
		switch {
		case now.Sub(known.seen) >= calm || known.revision != revisionOf(in, known.end):
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
