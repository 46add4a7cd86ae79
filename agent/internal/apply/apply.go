// Package apply carries out a plan stage by stage. The messages of a stage are pipelined. The failure of an
// operation affects only the operation's end of a VLL.
package apply

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/classify"
	"go.fd.io/govpp/binapi/policer"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/plan"
	"longline.dev/agent/internal/vpp"
)

// Session has the methods of a connection to VPP that this package needs.
type Session interface {
	Has(api.Message) bool
	Calls(ctx context.Context, reqs []api.Message) ([]api.Message, error)
}

var _ Session = (*vpp.Session)(nil)

// Rereader reads VPP again, starting from the snapshot on which the plan is based.
type Rereader interface {
	// Epoch returns the current epoch of VPP's stats segment, 0 if it is unknown.
	Epoch() int64
	// ByIndex reads the objects with these indices, and nothing else.
	ByIndex(context.Context, *observe.NamedByIndex) (*observe.Snapshot, error)
	// AllInterfaces reads all interfaces and, if keys is true, also the keys of the tunnels.
	AllInterfaces(ctx context.Context, keys bool) (*observe.Snapshot, error)
	// Reread reads the keys of all interfaces, and all properties of the interfaces that the plan changes.
	Reread(context.Context) (*observe.Snapshot, error)
	// Ports reads these ports and their sub-interfaces, and nothing else.
	Ports(ctx context.Context, ports []uint32) (*observe.Snapshot, error)
}

// Result is the outcome of a plan.
type Result struct {
	// Failed has the ends with an operation that VPP refused or that was not sent, each with its first reason.
	Failed map[intent.Key]*plan.Reason
	// Writes is the number of messages sent that change VPP.
	Writes int
	// Made has the indices of the created interfaces.
	Made map[plan.Made]uint32
	// Untagged has the created interfaces whose tag VPP has not confirmed.
	Untagged map[plan.Made]bool
}

// Run sends the operations, which are sorted by stage. If an operation of an end fails, Run skips
// the later stages of that end and continues with all other ends. Exception: Run tags all
// interfaces that were created for the failed end, so that each of these interfaces has an owner.
//
// VPP reuses indices, and time has passed since the plan was made, because claims were written to
// disk. Therefore, immediately before Run sends messages, it reads again all objects that these
// messages name. If an object of a message differs from the plan, Run does not send the message.
// Immediately before creations it also reads the keys again. If another user has created a
// sub-interface for a VLAN meanwhile, the creation of a second sub-interface for this VLAN would
// stop that user's frames.
//
// before is the snapshot on which the plan is based, and sentInto is the plan's SentInto. An error
// means that the session ended and an unknown part of the plan was carried out.
func Run(
	ctx context.Context, session Session, ops []plan.Op, before *observe.Snapshot, sentInto map[uint32]*plan.Reason, rereader Rereader,
) (*Result, error) {
	r := &applying{session: session, sentInto: sentInto, rereader: rereader, guard: plan.NewIndexGuard(before), Result: &Result{
		Failed: make(map[intent.Key]*plan.Reason), Made: make(map[plan.Made]uint32), Untagged: make(map[plan.Made]bool),
	}, policers: make(map[intent.Key]uint32), tables: make(map[intent.Key]uint32)}
	for _, stage := range plan.Stages {
		batch := r.due(ops, stage)
		if len(batch) == 0 {
			continue
		}
		if stage == plan.Create {
			now, err := r.rereadBeforeCreates(ctx, batch)
			if err != nil {
				return r.Result, err
			}
			batch = r.verified(batch, plan.NewCreateCheck(now).Verify)
		}
		if stage != plan.Delete && stage != plan.Create { // the stages Delete and Create change the epoch themselves
			if err := r.readAhead(ctx, batch); err != nil {
				return r.Result, err
			}
		}
		if err := r.rounds(ctx, batch); err != nil {
			return r.Result, err
		}
		r.deleted = r.deleted || stage == plan.Delete
	}
	return r.Result, nil
}

type applying struct {
	*Result
	session  Session
	rereader Rereader
	guard    *plan.IndexGuard
	sentInto map[uint32]*plan.Reason
	deleted  bool

	policers, tables map[intent.Key]uint32 // indices of created objects other than interfaces
}

// longestRound is the largest number of operations in a round. It is also the largest number of
// requests in the read before the round. VPP receives this number of messages at a time.
const longestRound = 64

// round has operations that are sent together, and the current state of the objects that they name.
type round struct {
	ops   []plan.Op
	epoch int64
	now   *observe.Snapshot
}

// readAhead reads all interfaces once if a long batch names many of them. If an interface is as
// planned, its round need not read it again, unless the epoch has changed between the two reads. An
// interface that is not as planned is read and checked again in its round.
func (r *applying) readAhead(ctx context.Context, batch []plan.Op) error {
	epoch := r.rereader.Epoch()
	if len(batch) <= longestRound || epoch == 0 {
		return nil
	}
	most, keys := r.guard.NamesMost(batch, r.Made, epoch)
	if !most {
		return nil
	}
	now, err := r.rereader.AllInterfaces(ctx, keys)
	if err != nil {
		return err
	}
	for _, op := range batch {
		_ = r.guard.Verify(op, r.Made, epoch, now)
	}
	return nil
}

// rounds sends a batch in rounds. Before each round it reads the objects that the round names.
func (r *applying) rounds(ctx context.Context, batch []plan.Op) error {
	for len(batch) > 0 {
		this, err := r.read(ctx, batch)
		if err != nil {
			return err
		}
		unchanged := r.verified(this.ops, func(op plan.Op) *plan.Reason { return r.guard.Verify(op, r.Made, this.epoch, this.now) })
		if err := r.send(ctx, r.onlyDue(unchanged)); err != nil {
			return err
		}
		batch = batch[len(this.ops):]
	}
	return nil
}

// read returns the next round: the first operations of a batch, with the objects that they name. It does not
// read interfaces that were already found as planned in the same epoch of VPP's stats segment, because no
// interface is created or deleted within an epoch.
func (r *applying) read(ctx context.Context, batch []plan.Op) (this *round, err error) {
	this = &round{epoch: r.rereader.Epoch(), now: new(observe.Snapshot)}
	var named observe.NamedByIndex
	for n, op := range batch {
		if n == longestRound || named.Len()+2 > longestRound { // one operation adds at most two objects
			break
		}
		r.guard.AddUnread(op, r.Made, this.epoch, &named)
		this.ops = batch[:n+1]
	}
	if named.Len() > 0 {
		this.now, err = r.rereader.ByIndex(ctx, &named)
	}
	return this, err
}

// verified returns the operations for which the function verify returns no reason. All other operations
// fail with their reason.
func (r *applying) verified(ops []plan.Op, verify func(plan.Op) *plan.Reason) []plan.Op {
	same := make([]plan.Op, 0, len(ops))
	for _, op := range ops {
		if reason := verify(op); reason != nil {
			r.fail(op, reason)
			delete(r.Untagged, op.Action.Target().Made) // the created interface no longer exists
			continue
		}
		same = append(same, op)
	}
	return same
}

// rereadBeforeCreates reads the objects that the checks before creations need. If this plan has deleted
// nothing, these are only the ports of sub-interfaces. Tunnels need no check, because VPP refuses a second
// tunnel without harm to the first tunnel.
func (r *applying) rereadBeforeCreates(ctx context.Context, batch []plan.Op) (*observe.Snapshot, error) {
	if r.deleted {
		return r.rereader.Reread(ctx)
	}
	var ports []uint32
	for _, op := range batch {
		if create, ok := op.Action.(plan.CreateSub); ok && !slices.Contains(ports, create.Port.Index) {
			ports = append(ports, create.Port.Index)
		}
	}
	return r.rereader.Ports(ctx, ports)
}

// due returns the operations of a stage that are still to be sent.
func (r *applying) due(ops []plan.Op, stage plan.Stage) []plan.Op {
	byStage := func(op plan.Op, stage plan.Stage) int { return cmp.Compare(op.Stage, stage) }
	from, _ := slices.BinarySearchFunc(ops, stage, byStage)
	to, _ := slices.BinarySearchFunc(ops, stage+1, byStage)
	return r.onlyDue(slices.Clone(ops[from:to]))
}

func (r *applying) onlyDue(ops []plan.Op) []plan.Op {
	return slices.DeleteFunc(ops, func(op plan.Op) bool { return !r.isDue(op) })
}

func (r *applying) isDue(op plan.Op) bool {
	if r.Failed[op.End] == nil {
		return true
	}
	_, made := r.Made[op.Action.Target().Made]
	return made && op.Stage == plan.Tag
}

func (r *applying) send(ctx context.Context, batch []plan.Op) error {
	sent, messages := make([]plan.Op, 0, len(batch)), make([]api.Message, 0, len(batch))
	for _, op := range batch {
		created := r.createdFor(op.End)
		message := op.Action.Encode(created)
		name := message.GetMessageName()
		if session, leads := op.Action.(plan.SetSession); leads && !session.Leads(created) {
			r.fail(op, &plan.Reason{Status: "failed", Code: "unsupported", VPPMessage: name, Object: session.Policer,
				Message: "VPP's classify tables lead to none of its policers beyond the first 65,536"})
			continue
		}
		if !r.session.Has(message) {
			r.fail(op, &plan.Reason{Status: "failed", Code: "unsupported", VPPMessage: name, Message: "this VPP has no message " + name})
			continue
		}
		sent, messages = append(sent, op), append(messages, message)
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

func (r *applying) note(op plan.Op, reply api.Message) {
	target := op.Action.Target()
	if retval := vpp.Retval(reply); retval != 0 {
		r.fail(op, refused(op, retval))
		return
	}
	if op.Stage == plan.Create {
		if created, ok := vpp.CreatedInterface(reply); ok {
			r.Made[target.Made] = uint32(created)
			r.guard.NoteMade(uint32(created), op.Action)
			r.Untagged[target.Made] = true
			if reason := r.sentInto[uint32(created)]; reason != nil {
				r.fail(op, reason)
			}
		}
	}
	switch made := reply.(type) {
	case *policer.PolicerAddReply:
		r.policers[op.End] = made.PolicerIndex
	case *classify.ClassifyAddDelTableReply:
		if op.Stage == plan.Create {
			r.tables[op.End] = made.NewTableIndex
		}
	}
	if tag, ok := op.Action.(plan.SetTag); ok {
		r.guard.NoteTag(target.At(r.Made), tag.Tag)
		delete(r.Untagged, target.Made)
	}
}

func (r *applying) fail(op plan.Op, reason *plan.Reason) {
	if r.Failed[op.End] == nil {
		r.Failed[op.End] = reason
	}
}

// createdFor returns the indices of the objects that earlier operations created, as an operation of this end needs
// them.
func (r *applying) createdFor(end intent.Key) plan.Created {
	created := plan.Created{Interfaces: r.Made, Policer: observe.NoIndex, Table: observe.NoIndex}
	if index, ok := r.policers[end]; ok {
		created.Policer = index
	}
	if index, ok := r.tables[end]; ok {
		created.Table = index
	}
	return created
}

func refused(op plan.Op, retval int32) *plan.Reason {
	text := api.RetvalToVPPApiError(retval).Error()
	text = strings.TrimSuffix(strings.TrimPrefix(text, "VPPApiError: "), fmt.Sprintf(" (%d)", retval))
	name := op.Message()
	return &plan.Reason{
		Status: "failed", Code: "vpp_refused", Object: op.Action.Target().Name, Retval: retval, VPPMessage: name,
		Message: fmt.Sprintf("VPP refused %s: %s", name, text),
	}
}
