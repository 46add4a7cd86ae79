package converge

import (
	"errors"
	"fmt"

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
