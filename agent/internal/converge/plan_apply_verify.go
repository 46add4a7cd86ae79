package converge

import (
	"context"
	"maps"
	"slices"

	"longline.dev/agent/internal/apply"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/plan"
)

const (
	// passes is the largest number of passes of one converge. After a pass, VPP may still differ from the
	// intent, because a new interface can inherit settings from an earlier interface with the same index.
	passes = 3
	// fewTouched is the largest number of interfaces that the agent reads back individually (with
	// all cross-connects). If a plan touches more interfaces, the agent reads back all of VPP.
	fewTouched = 200
)

// round brings VPP to the state of the intent. It returns the outcome and the number of changes that it sent
// to VPP. If the early plan has no operations, round changes nothing in VPP. Otherwise it carries out the
// plan, reads its changes back and plans again. It repeats these steps until nothing is left to do,
// but makes at most as many passes as the constant passes says. An end counts as verified if it has
// no operations left.
func (e *Engine) round(ctx context.Context, in, before *intent.Intent, withheld map[intent.Key]*plan.Reason, early *earlyPlan) (*Outcome, int, error) {
	session, snapshot, todo, err := early.wait()
	if err != nil {
		return nil, 0, err
	}
	e.lastClean = cleanPlan{} // until this round has finished
	e.noteRepaired(before, in, todo.Ops)
	failed, writes := make(map[intent.Key]*plan.Reason), 0
	for range passes {
		ops := withoutFailed(todo.Ops, failed)
		if len(ops) == 0 {
			break
		}
		claims := e.journalOf(snapshot, todo.StandingClaims, todo.CreationClaims)
		claims.Applied = 0 // if the agent is killed before the round has finished, it must start again, also under ReportOnly
		if err := e.journal.Claim(claims); err != nil {
			return nil, writes, err
		}
		touched := targets(ops)
		result, err := apply.Run(ctx, countingSession{session, e}, ops, snapshot, todo.SentInto, &rereader{e, session, snapshot, touched})
		writes += result.Writes
		e.noteMade(result)
		if err != nil {
			return nil, writes, err
		}
		maps.Copy(failed, result.Failed)
		var all bool
		if snapshot, all, err = readBack(ctx, session, snapshot, touched, result, e.claimedPorts(session)); err != nil {
			return nil, writes, err
		}
		journal := e.journalOf(snapshot, todo.StandingClaims, untaggedCreations(todo.CreationClaims, result))
		if all {
			todo = e.diff(in, snapshot, journal, withheld)
		} else {
			todo = e.planBy(todo.Replan, in, snapshot, journal, withheld)
		}
	}
	e.noteTagged(snapshot, todo)
	e.remember(session, snapshot, extentReadBack)
	e.lastClean.note(session, todo)
	if len(failed) > 0 {
		e.forceFullObservation() // another client may have changed a property that only a full observation reads
	}
	journal := e.journalOf(snapshot, todo.StandingClaims, nil)
	journal.Applied = in.Generation
	if err := e.journal.Note(journal); err != nil {
		return nil, writes, err
	}
	return judge(in, todo, failed), writes, nil
}

func (e *Engine) journalOf(s *observe.Snapshot, standing, creations []ownership.Claim) ownership.Journal {
	journal := e.journal.Of(s.Boot)
	journal.Claims = slices.Concat(standing, creations)
	return journal
}

func withoutFailed(ops []plan.Op, failed map[intent.Key]*plan.Reason) []plan.Op {
	if len(failed) == 0 {
		return ops
	}
	var rest []plan.Op
	for _, op := range ops {
		if failed[op.End] == nil {
			rest = append(rest, op)
		}
	}
	return rest
}

// targets returns the existing interfaces that the operations change.
func targets(ops []plan.Op) map[uint32]bool {
	touched := make(map[uint32]bool)
	for _, op := range ops {
		if index := op.Action.Target().Index; index != observe.NoIndex {
			touched[index] = true
		}
	}
	return touched
}

// rereader reads VPP again immediately before the operations of a plan are sent, so that the operations can
// be checked.
type rereader struct {
	engine  *Engine
	session Session
	before  *observe.Snapshot
	touched map[uint32]bool
}

// Epoch returns the current epoch of VPP's stats segment.
func (r *rereader) Epoch() int64 { return r.engine.epoch(r.session) }

// ByIndex reads only the objects with these indices.
func (r *rereader) ByIndex(ctx context.Context, named *observe.NamedByIndex) (*observe.Snapshot, error) {
	return observe.ByIndex(ctx, r.session, named)
}

// AllInterfaces reads only the interfaces and, if keys is true, the tunnels.
func (r *rereader) AllInterfaces(ctx context.Context, keys bool) (*observe.Snapshot, error) {
	return observe.AllInterfaces(ctx, r.session, keys)
}

// Reread makes a quick observation that includes all properties of the touched interfaces. It makes
// a full observation instead if there are more touched interfaces than fewTouched, or if a quick
// observation is not enough.
func (r *rereader) Reread(ctx context.Context) (*observe.Snapshot, error) {
	if len(r.touched) <= fewTouched {
		if s, ok, err := observe.Quick(ctx, r.session, r.before, r.touched); ok || err != nil {
			return s, err
		}
	}
	return observe.Full(ctx, r.session, boot(r.session), r.engine.claimedPorts(r.session)...)
}

// Ports reads only these ports and their sub-interfaces. It does not query VPP if the epoch is
// unchanged, because no interface has then been created or deleted.
func (r *rereader) Ports(ctx context.Context, ports []uint32) (*observe.Snapshot, error) {
	if epoch := r.before.Epoch; len(ports) > 0 && epoch != 0 && r.engine.epoch(r.session) == epoch {
		return r.before.OnlyPorts(ports), nil
	}
	return observe.Ports(ctx, r.session, r.before, ports)
}

// readBack reads the touched and the created interfaces again. If there are more of them than
// fewTouched, it reads all of VPP, and all is true. claimed has the same meaning as for
// observe.Full.
func readBack(
	ctx context.Context, session Session, before *observe.Snapshot, touched map[uint32]bool, result *apply.Result, claimed []string,
) (s *observe.Snapshot, all bool, err error) {
	for _, index := range result.Made {
		touched[index] = true
	}
	if len(touched) > fewTouched {
		if s, err = observe.Full(ctx, session, boot(session), claimed...); err == nil {
			s.Uses = before.Uses
		}
		return s, true, err
	}
	s, err = observe.Partial(ctx, session, before, touched)
	return s, false, err
}

// untaggedCreations returns the claims to objects whose creation VPP confirmed but whose tag VPP did not
// confirm. The claim to an object that VPP refused to create is not among them: an existing object
// with that key does not belong to the agent.
func untaggedCreations(creations []ownership.Claim, result *apply.Result) []ownership.Claim {
	var left []ownership.Claim
	for _, c := range creations {
		role := plan.Access
		if c.Tunnel != nil {
			role = plan.Tunnel
		}
		if result.Untagged[plan.Made{End: c.Key(), Role: role}] {
			left = append(left, c)
		}
	}
	return left
}

// earlyPlan is an observation in progress, with the plan that follows from it. It can run while an intent is
// written to disk.
type earlyPlan struct {
	session  Session
	done     chan struct{}
	cancel   context.CancelFunc
	snapshot *observe.Snapshot
	todo     *plan.Plan // nil without an intent
	err      error
}

// observeFunc observes VPP. Some ports are wanted as a whole by the stored intent or the given
// intents, and VPP does not have them as wanted yet. For these ports, it also reads how other
// clients use them.
type observeFunc func(context.Context, Session, ...*intent.Intent) (*observe.Snapshot, error)

// withholdFunc returns ends that must not be changed, each with its reason. Only ends of the given operations
// are returned.
type withholdFunc func([]plan.Op) map[intent.Key]*plan.Reason

// planEarly starts to observe VPP and to make a plan for an intent. It only reads from VPP, so it may run
// before the intent is on disk. If no intent is stored, the intent is nil, and there is no plan. The end of
// ctx does not stop the work. Until wait has returned, no other work may use the engine.
//
// before is the intent that was stored. If before is not nil, planEarly may observe only the VLLs that differ
// between both intents. Otherwise it observes VPP with the function read. If withhold is not nil, planEarly
// then calls withhold and adds the returned ends to the withheld ends.
func (e *Engine) planEarly(
	ctx context.Context, read observeFunc, in, before *intent.Intent, withheld map[intent.Key]*plan.Reason, withhold withholdFunc,
) *earlyPlan {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	a := &earlyPlan{done: make(chan struct{}), cancel: cancel}
	if a.session, a.err = e.Session(); a.err != nil {
		close(a.done)
		return a
	}
	go func() {
		defer close(a.done)
		if before != nil && in != nil && e.planFromPartialObservation(ctx, a, in, before, withheld) {
			return
		}
		var wanted []*intent.Intent
		if in != nil {
			wanted = append(wanted, in)
		}
		if a.snapshot, a.err = read(ctx, a.session, wanted...); a.err == nil && in != nil {
			journal := e.journal.Of(a.snapshot.Boot)
			if a.todo = e.diff(in, a.snapshot, journal, withheld); withhold == nil {
				return
			}
			if left := withhold(a.todo.Ops); len(left) > 0 {
				maps.Copy(withheld, left)
				a.todo = e.diff(in, a.snapshot, journal, withheld)
			}
		}
	}()
	return a
}

// planFromPartialObservation plans from a partial observation. It returns false if a partial observation is
// not enough. It returns true if it has stored the plan, or the error of the observation, in the early plan.
func (e *Engine) planFromPartialObservation(ctx context.Context, a *earlyPlan, in, before *intent.Intent, withheld map[intent.Key]*plan.Reason) bool {
	vlls := differing(before, in)
	if a.snapshot, a.err = e.partialObservation(ctx, a.session, in, vlls); a.err != nil {
		return true
	}
	if a.snapshot == nil {
		return false
	}
	a.todo = e.diffFor(a.session, vlls, in, a.snapshot, e.journal.Of(a.snapshot.Boot), withheld)
	return !aboutOthers(a.todo, vlls)
}

func (a *earlyPlan) wait() (Session, *observe.Snapshot, *plan.Plan, error) {
	<-a.done
	a.cancel()
	return a.session, a.snapshot, a.todo, a.err
}

// diff returns the result of plan.Diff with the settings and limits of this router (see planBy).
func (e *Engine) diff(in *intent.Intent, s *observe.Snapshot, journal ownership.Journal, withheld map[intent.Key]*plan.Reason) *plan.Plan {
	return e.planBy(plan.Diff, in, s, journal, withheld)
}

// asThisRouterWants returns the intent with the settings of the agent's configuration file.
func (e *Engine) asThisRouterWants(in *intent.Intent) *intent.Intent {
	if !e.options.PortMTUs {
		return in
	}
	local := *in
	local.PortMTUs = true
	return &local
}

// diffFor returns the result of diff. If the last complete plan through this session left nothing
// to do, the result is for the given VLLs only, otherwise for all VLLs.
func (e *Engine) diffFor(
	session Session, vlls map[string]bool, in *intent.Intent, s *observe.Snapshot, journal ownership.Journal,
	withheld map[intent.Key]*plan.Reason,
) *plan.Plan {
	if e.lastClean.plan == nil || e.lastClean.session != session {
		return e.diff(in, s, journal, withheld)
	}
	return e.planBy(e.lastClean.plan.ReplanFor(vlls), in, s, journal, withheld)
}

// planBy returns a plan of the function do. This function is plan.Diff, or it plans again after another
// plan was carried out. planBy uses the settings of this router. It withholds ends that need more new
// interfaces than VPP has room for. If there were too many interfaces, VPP would abort and all VLLs would
// fail.
func (e *Engine) planBy(
	do plan.Planner, in *intent.Intent, s *observe.Snapshot, journal ownership.Journal, withheld map[intent.Key]*plan.Reason,
) *plan.Plan {
	in, withheld = e.asThisRouterWants(in), e.withRefusedAdoptions(in, withheld)
	todo := do(in, s, journal, withheld)
	if e.options.FreeInterfaces == nil || len(todo.CreationClaims) == 0 {
		return todo
	}
	free, err := e.options.FreeInterfaces(s.Boot.MS, len(s.Interfaces))
	if err != nil {
		e.log.Warn("the free space for interfaces in VPP is not known", "error", err)
		return todo
	}
	beyond := todo.BeyondInterfaceLimit(in, free)
	if len(beyond) == 0 {
		return todo
	}
	e.log.Error("VPP's stats segment has no room", "interfaces", free, "ends_waiting", len(beyond))
	maps.Copy(beyond, withheld)
	return plan.Diff(in, s, journal, beyond)
}

// withRefusedAdoptions returns the withheld ends. If the agent's configuration file does not allow
// adoption, it adds the ends that the portal wants to adopt. Otherwise a portal under an attacker's
// control could take over foreign interfaces and then delete them.
func (e *Engine) withRefusedAdoptions(in *intent.Intent, withheld map[intent.Key]*plan.Reason) map[intent.Key]*plan.Reason {
	if e.options.Adoption {
		return withheld
	}
	all := maps.Clone(withheld)
	for _, end := range in.Present {
		if end.Adopt && all[end.Key] == nil {
			if all == nil {
				all = make(map[intent.Key]*plan.Reason)
			}
			all[end.Key] = &plan.Reason{Status: "conflict", Code: "adoption_refused", Object: end.Access.Interface,
				Message: "this router's agent may not take over lines that others made: set `adoption: allowed` in its file, and start it again"}
		}
	}
	return all
}
