package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/geneve"
	"go.fd.io/govpp/binapi/gre"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/vxlan"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/plan"
	"longline.dev/agent/internal/vpp"
)

// Session is what applying needs of a connection to VPP.
type Session interface {
	Has(api.Message) bool
	Calls(ctx context.Context, reqs []api.Message) ([]api.Message, error)
}

var _ Session = (*vpp.Session)(nil)

// Look reads VPP again, starting from the snapshot that was planned from.
type Look interface {
	// Again reads all keys, and all of what the plan touches.
	Again(context.Context) (*observe.Snapshot, error)
	// Ports reads these ports and their sub-interfaces, and nothing else.
	Ports(ctx context.Context, ports []uint32) (*observe.Snapshot, error)
}

// Result is what came of a plan.
type Result struct {
	// Failed are the ends of which an operation was refused or withheld; the first reason counts.
	Failed map[intent.Key]*plan.Reason
	// Writes is the number of messages sent that change VPP.
	Writes int
	// Made are the indices of what was created.
	Made map[plan.Made]uint32
	// Untagged are the creations that VPP confirmed but whose tag it did not.
	Untagged map[plan.Made]bool
}

// Run sends the operations, which stand in order of stage. Of an end whose operation fails, later stages
// are skipped; all other ends proceed. What was made is tagged even then, so that it has an owner.
//
// Right before deletes and creates the keys that they go by are read anew: a plan may have waited for a disk,
// and one create of a VLAN that somebody has made meanwhile stops their frames. sentInto is that of the plan. An error
// means that the session ended and that an unknown part has been done.
func Run(ctx context.Context, session Session, ops []plan.Op, sentInto map[uint32]*plan.Reason, look Look) (*Result, error) {
	r := &run{session: session, sentInto: sentInto, Result: Result{
		Failed: make(map[intent.Key]*plan.Reason), Made: make(map[plan.Made]uint32), Untagged: make(map[plan.Made]bool),
	}}
	for _, stage := range plan.Stages {
		batch := r.due(ops, stage)
		if len(batch) == 0 {
			continue
		}
		if stage == plan.Delete || stage == plan.Create {
			now, err := r.lookAgain(ctx, batch, look)
			if err != nil {
				return &r.Result, err
			}
			batch = r.recheck(batch, now)
		}
		if err := r.send(ctx, batch); err != nil {
			return &r.Result, err
		}
		r.deleted = r.deleted || stage == plan.Delete
	}
	return &r.Result, nil
}

type run struct {
	Result
	session  Session
	sentInto map[uint32]*plan.Reason
	deleted  bool
}

// lookAgain reads what the checks of a batch go by. Where only sub-interfaces are made these are their ports:
// of tunnels VPP refuses a second one without harm to the first.
func (r *run) lookAgain(ctx context.Context, batch []plan.Op, look Look) (*observe.Snapshot, error) {
	if batch[0].Stage == plan.Delete || r.deleted {
		return look.Again(ctx)
	}
	var ports []uint32
	for _, op := range batch {
		if create, ok := op.Action.(plan.CreateSub); ok && !slices.Contains(ports, create.Port.Index) {
			ports = append(ports, create.Port.Index)
		}
	}
	return look.Ports(ctx, ports)
}

// due are the operations of a stage that are still to be done.
func (r *run) due(ops []plan.Op, stage plan.Stage) []plan.Op {
	var due []plan.Op
	for _, op := range ops {
		_, made := r.Made[op.Action.Target().Made]
		if op.Stage == stage && (r.Failed[op.End] == nil || stage == plan.Tag && made) {
			due = append(due, op)
		}
	}
	return due
}

func (r *run) recheck(batch []plan.Op, now *observe.Snapshot) []plan.Op {
	check := plan.NewCheck(now)
	var still []plan.Op
	for _, op := range batch {
		if reason := check.Of(op); reason != nil {
			r.fail(op, reason)
			continue
		}
		still = append(still, op)
	}
	return still
}

func (r *run) send(ctx context.Context, batch []plan.Op) error {
	var sent []plan.Op
	var messages []api.Message
	for _, op := range batch {
		message, err := encode(op.Action, r.find)
		switch {
		case err != nil:
			r.fail(op, &plan.Reason{Status: "pending", Code: "verify_mismatch", Message: err.Error(), Object: op.Action.Target().Name})
		case !r.session.Has(message):
			r.fail(op, &plan.Reason{Status: "failed", Code: "unsupported", VPPMessage: op.Action.Message(),
				Message: "this VPP has no message " + op.Action.Message()})
		default:
			sent, messages = append(sent, op), append(messages, message)
		}
	}
	r.Writes += len(messages)
	replies, err := r.session.Calls(ctx, messages)
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	for i, reply := range replies {
		r.note(sent[i], reply)
	}
	return nil
}

func (r *run) note(op plan.Op, reply api.Message) {
	target := op.Action.Target()
	if retval := vpp.Retval(reply); retval != 0 {
		r.fail(op, refused(op, retval))
		return
	}
	if created, ok := createdIndex(reply); ok && op.Stage == plan.Create {
		r.Made[target.Made] = uint32(created)
		r.Untagged[target.Made] = true
		if reason := r.sentInto[uint32(created)]; reason != nil {
			r.fail(op, reason)
		}
	}
	if op.Stage == plan.Tag {
		delete(r.Untagged, target.Made)
	}
}

func (r *run) fail(op plan.Op, reason *plan.Reason) {
	if r.Failed[op.End] == nil {
		r.Failed[op.End] = reason
	}
}

func (r *run) find(ref plan.Ref) (index, error) {
	if ref.Index != observe.NoIndex {
		return index(ref.Index), nil
	}
	made, ok := r.Made[ref.Made]
	if !ok {
		return 0, fmt.Errorf("%s was not made", ref.Name)
	}
	return index(made), nil
}

func refused(op plan.Op, retval int32) *plan.Reason {
	text := api.RetvalToVPPApiError(retval).Error()
	text = strings.TrimSuffix(strings.TrimPrefix(text, "VPPApiError: "), fmt.Sprintf(" (%d)", retval))
	return &plan.Reason{
		Status: "failed", Code: "vpp_refused", Object: op.Action.Target().Name, Retval: retval, VPPMessage: op.Action.Message(),
		Message: fmt.Sprintf("VPP refused %s: %s", op.Action.Message(), text),
	}
}

func createdIndex(reply api.Message) (index, bool) {
	switch m := reply.(type) {
	case *interfaces.CreateSubifReply:
		return m.SwIfIndex, true
	case *vxlan.VxlanAddDelTunnelV3Reply:
		return m.SwIfIndex, true
	case *geneve.GeneveAddDelTunnel2Reply:
		return m.SwIfIndex, true
	case *gre.GreTunnelAddDelReply:
		return m.SwIfIndex, true
	}
	return 0, false
}
