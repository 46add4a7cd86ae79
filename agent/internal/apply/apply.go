package apply

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/classify"
	"go.fd.io/govpp/binapi/geneve"
	"go.fd.io/govpp/binapi/gre"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/policer"
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

// Rereader reads VPP again, starting from the snapshot that was planned from.
type Rereader interface {
	// Epoch is that of VPP's stats segment now, 0 when not known.
	Epoch() int64
	// ByIndex reads what stands at these indices, and nothing else.
	ByIndex(context.Context, *observe.NamedByIndex) (*observe.Snapshot, error)
	// AllInterfaces reads what stands at all indices, the tunnels' keys too if they are asked for, and nothing else.
	AllInterfaces(ctx context.Context, keys bool) (*observe.Snapshot, error)
	// Reread reads all keys, and all of what the plan touches.
	Reread(context.Context) (*observe.Snapshot, error)
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
// A plan may have waited for a disk, and VPP gives indices out again. So all that messages name is read once more, in the
// message round right before theirs, and nothing is sent about what is not what it was when it was planned for. Right
// before creates the keys that they go by are read anew: one create of a VLAN that somebody has made meanwhile stops their
// frames. before and sentInto are what the plan was made from and its own. An error means that the session ended and that
// an unknown part has been done.
func Run(
	ctx context.Context, session Session, ops []plan.Op, before *observe.Snapshot, sentInto map[uint32]*plan.Reason, look Rereader,
) (*Result, error) {
	r := &applying{session: session, sentInto: sentInto, rereader: look, guard: plan.NewIndexGuard(before), Result: &Result{
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
			batch = r.recheck(batch, now)
		}
		if stage != plan.Delete && stage != plan.Create { // they move the epoch themselves
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

	policers, tables map[intent.Key]uint32 // indices of what was made besides interfaces
}

// longestRound is how many operations are sent after one reading, and how many messages that may take: as many as VPP is
// given at a time.
const longestRound = 64

// round are operations that are sent together, and what they name as it is right before.
type round struct {
	ops   []plan.Op
	epoch int64
	now   *observe.Snapshot
}

// readAhead reads everything once where a batch names much of it. What is then as it should be need not be read by its round,
// unless the epoch has moved by then; what is not is read again, and judged there.
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

// rounds sends a batch, each round after what it names was read.
func (r *applying) rounds(ctx context.Context, batch []plan.Op) error {
	for len(batch) > 0 {
		this, err := r.read(ctx, batch)
		if err != nil {
			return err
		}
		if err := r.send(ctx, r.unchanged(this)); err != nil {
			return err
		}
		batch = batch[len(this.ops):]
	}
	return nil
}

// read reads all that the first operations of a batch name. Of what was found there in this apply and in the same epoch of
// VPP's stats segment it is known: interfaces neither come nor go within one.
func (r *applying) read(ctx context.Context, batch []plan.Op) (this *round, err error) {
	this = &round{epoch: r.rereader.Epoch(), now: new(observe.Snapshot)}
	var named observe.NamedByIndex
	for n, op := range batch {
		if n == longestRound || named.Len()+2 > longestRound { // the most that one operation adds
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

// unchanged are the operations of a round of which all that they name is what was planned for.
func (r *applying) unchanged(this *round) []plan.Op {
	same := make([]plan.Op, 0, len(this.ops))
	for _, op := range this.ops {
		if reason := r.guard.Verify(op, r.Made, this.epoch, this.now); reason != nil {
			r.fail(op, reason)
			delete(r.Untagged, op.Action.Target().Made) // what was made is no more
			continue
		}
		same = append(same, op)
	}
	return r.onlyDue(same)
}

// rereadBeforeCreates reads what the checks of creates go by. Where nothing was deleted these are the ports of
// sub-interfaces: of tunnels VPP refuses a second one without harm to the first.
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

// due are the operations of a stage that are still to be done.
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

func (r *applying) recheck(batch []plan.Op, now *observe.Snapshot) []plan.Op {
	check := plan.NewCreateCheck(now)
	var still []plan.Op
	for _, op := range batch {
		if reason := check.Verify(op); reason != nil {
			r.fail(op, reason)
			continue
		}
		still = append(still, op)
	}
	return still
}

func (r *applying) send(ctx context.Context, batch []plan.Op) error {
	sent, messages := make([]plan.Op, 0, len(batch)), make([]api.Message, 0, len(batch))
	for _, op := range batch {
		message := r.encode(op)
		if session, leads := op.Action.(plan.SetSession); leads && !plan.Leads(r.policerOf(op.End, session.Index)) {
			r.fail(op, &plan.Reason{Status: "failed", Code: "unsupported", VPPMessage: op.Action.Message(), Object: session.Policer,
				Message: "VPP's classify tables lead to none of its policers beyond the first 65,536"})
			continue
		}
		if !r.session.Has(message) {
			r.fail(op, &plan.Reason{Status: "failed", Code: "unsupported", VPPMessage: op.Action.Message(),
				Message: "this VPP has no message " + op.Action.Message()})
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
	if created, ok := createdIndex(reply); ok && op.Stage == plan.Create {
		r.Made[target.Made] = uint32(created)
		r.guard.NoteMade(uint32(created), op.Action)
		r.Untagged[target.Made] = true
		if reason := r.sentInto[uint32(created)]; reason != nil {
			r.fail(op, reason)
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

func (r *applying) indexOf(ref plan.Ref) index { return index(ref.At(r.Made)) }

// policerOf is the index of a policer that is there, or of the one that was made for the end.
func (r *applying) policerOf(end intent.Key, planned uint32) uint32 {
	if made, ok := r.policers[end]; ok && planned == observe.NoIndex {
		return made
	}
	return planned
}

// tableOf is the index of a classify table that is there, or of the one that was made for the end.
func (r *applying) tableOf(end intent.Key, planned plan.Table) uint32 {
	if made, ok := r.tables[end]; ok && planned.Index == observe.NoIndex {
		return made
	}
	return planned.Index
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
	case *gre.GreTunnelAddDelV2Reply:
		return m.SwIfIndex, true
	}
	return 0, false
}
