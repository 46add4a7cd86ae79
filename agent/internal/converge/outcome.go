package converge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"go.fd.io/govpp/api"

	"longline.dev/agent/internal/apply"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/plan"
	"longline.dev/agent/internal/vpp"
)

// Outcome is the result of an attempt to apply an intent.
type Outcome struct {
	Generation        int64
	ObservationNumber int64 // number of the observation that the outcome is based on, see Status
	Applied           bool  // false if the attempt did not finish, for example because VPP is not connected
	Ends              []End
	Quarantined       []*plan.EndInterface
}

// End is the result of one end. Reason is nil for "verified", "testing" and "removed".
type End struct {
	intent.Key
	Revision int32
	Status   string
	// Policed reports whether VPP enforces the end's bandwidth profile.
	Policed bool
	Reason  *plan.Reason
}

// judge returns the outcome of an intent. left is the plan with the operations that are still necessary after
// VPP was read back. failed contains the ends with an operation that VPP refused or that was not sent.
func judge(in *intent.Intent, left *plan.Plan, failed map[intent.Key]*plan.Reason) *Outcome {
	o := &Outcome{Generation: in.Generation, Applied: true, Quarantined: left.Quarantined}
	todo := make(map[intent.Key]plan.Op)
	for _, op := range left.Ops {
		if _, exists := todo[op.End]; !exists {
			todo[op.End] = op
		}
	}
	why := func(key intent.Key) *plan.Reason {
		op, open := todo[key]
		blocked := left.Blocked[key]
		switch {
		case !open && blocked == nil:
			return nil
		case failed[key] != nil:
			return failed[key]
		case blocked != nil:
			return blocked
		}
		return &plan.Reason{
			Status: "pending", Code: "verify_mismatch", Object: op.Drift.Object, VPPMessage: op.Message(),
			Message: fmt.Sprintf("read back, %s of %s is %q and not %q", op.Drift.Field, op.Drift.Object, op.Drift.Actual, op.Drift.Desired),
		}
	}
	add := func(key intent.Key, revision int32, good string) {
		end := End{Key: key, Revision: revision, Status: good, Policed: left.Policed[key], Reason: why(key)}
		if end.Reason != nil {
			end.Status = end.Reason.Status
		}
		o.Ends = append(o.Ends, end)
	}
	for _, e := range in.Present {
		good := "verified"
		if e.Testing {
			good = "testing"
		}
		add(e.Key, e.Revision, good)
	}
	for _, r := range in.Removed {
		add(r.Key, r.Revision, "removed")
	}
	return o
}

// unavailable returns the outcome of a stored intent that could not be applied completely.
func unavailable(in *intent.Intent, err error) *Outcome {
	reason := &plan.Reason{Status: "pending", Code: "vpp_unavailable",
		Message: "VPP is not connected; the intent is stored and will be applied on reconnection"}
	var other *vpp.OtherAgentError
	switch {
	case errors.As(err, &other):
		reason.Code, reason.Object = "other_agent", other.Folder
		reason.Message = "the intent is stored and not applied: " + err.Error()
	case !errors.Is(err, ErrNoVPP):
		reason.Message = "the intent is stored and will be applied again; this time: " + err.Error()
	}
	o := &Outcome{Generation: in.Generation}
	for _, e := range in.Present {
		o.Ends = append(o.Ends, End{Key: e.Key, Revision: e.Revision, Status: reason.Status, Reason: reason})
	}
	for _, r := range in.Removed {
		o.Ends = append(o.Ends, End{Key: r.Key, Revision: r.Revision, Status: reason.Status, Reason: reason})
	}
	return o
}

func (o *Outcome) counts() map[string]int {
	counts := make(map[string]int)
	for _, e := range o.Ends {
		counts[e.Status]++
	}
	return counts
}

// Statistics counts events since the start of the agent.
type Statistics struct {
	Converges, Writes, Repairs                               uint64
	FullObservations, QuickObservations, PartialObservations uint64
	Durations                                                Durations
	Operations                                               map[Operation]uint64
}

// DurationBounds are the upper bounds of the buckets of Durations. The last bucket has no upper bound.
var DurationBounds = [...]time.Duration{
	5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
}

// Durations is a histogram of the durations of all converges.
type Durations struct {
	Counts [len(DurationBounds) + 1]uint64
	Sum    time.Duration
}

func (d *Durations) add(duration time.Duration) {
	i := 0
	for i < len(DurationBounds) && duration > DurationBounds[i] {
		i++
	}
	d.Counts[i]++
	d.Sum += duration
}

// Operation is the name of a message that changes VPP, with VPP's result: "ok" or "refused".
type Operation struct{ Message, Result string }

// copied returns a copy that the engine no longer changes.
func (t Statistics) copied() Statistics {
	t.Operations = maps.Clone(t.Operations)
	return t
}

// countingSession counts the messages that change VPP.
type countingSession struct {
	Session
	engine *Engine
}

var _ apply.Session = countingSession{}

func (c countingSession) Calls(ctx context.Context, reqs []api.Message) ([]api.Message, error) {
	replies, err := c.Session.Calls(ctx, reqs)
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	if c.engine.statistics.Operations == nil {
		c.engine.statistics.Operations = make(map[Operation]uint64)
	}
	for i, reply := range replies {
		result := "ok"
		if vpp.Retval(reply) != 0 {
			result = "refused"
		}
		c.engine.statistics.Operations[Operation{reqs[i].GetMessageName(), result}]++
	}
	return replies, err
}
