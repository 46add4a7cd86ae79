package converge

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/classify"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/plan"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
)

// sessionWithMeddler is a session during which meddle is called once: after left rounds of changes. If left
// is 0, the call comes as late as possible before the first round: when the epoch is read for the second time
// or, without epochs, at the first message of the apply.
type sessionWithMeddler struct {
	*vpp.Session
	epoch   func(int64) (int64, error) // the engine's function, nil without a stats segment
	reads   int
	left    int
	meddle  func()
	meddled bool
	// foreign is the index that no longer belongs to the agent. touched lists the agent's messages about it
	// afterwards.
	foreign uint32
	touched []string
}

func (s *sessionWithMeddler) begin() {
	if s.left == 0 && !s.meddled {
		s.meddled = true
		s.meddle()
	}
}

// Epoch is called once before an observation, and then before changes.
func (s *sessionWithMeddler) Epoch(bootMS int64) (int64, error) {
	if s.reads++; s.reads > 1 {
		s.begin()
	}
	return s.epoch(bootMS)
}

func (s *sessionWithMeddler) Dump(ctx context.Context, requests []api.Message, each func(api.Message)) error {
	return s.DumpEach(ctx, requests, func(_ int, answer api.Message) { each(answer) })
}

func (s *sessionWithMeddler) DumpEach(ctx context.Context, requests []api.Message, each func(int, api.Message)) error {
	for _, request := range requests {
		if dump, ok := request.(*interfaces.SwInterfaceDump); ok && uint32(dump.SwIfIndex) != observe.NoIndex && s.epoch == nil {
			s.begin()
		}
	}
	return s.Session.DumpEach(ctx, requests, each)
}

func (s *sessionWithMeddler) Calls(ctx context.Context, requests []api.Message) ([]api.Message, error) {
	if !isChange(requests) {
		return s.Session.Calls(ctx, requests)
	}
	if s.epoch == nil {
		s.begin()
	}
	for _, request := range requests {
		if s.meddled && slices.Contains(named(request), s.foreign) {
			s.touched = append(s.touched, fmt.Sprintf("%T %+v", request, request))
		}
	}
	replies, err := s.Session.Calls(ctx, requests)
	if s.left--; err == nil {
		s.begin()
	}
	return replies, err
}

// named returns the interfaces that a message names by index. It ignores the removal of the agent's
// classify table from an interface that reuses the index. This does not change the foreign interface: VPP
// keeps the table bound there, where it does not work, and meanwhile refuses every other table.
func named(request api.Message) (indices []uint32) {
	if m, ok := request.(*classify.PolicerClassifySetInterface); ok && !m.IsAdd {
		return nil
	}
	fields := []string{"SwIfIndex", "RxSwIfIndex"}
	if m, ok := request.(*l2.SwInterfaceSetL2Xconnect); ok && m.Enable {
		fields = append(fields, "TxSwIfIndex")
	}
	for _, field := range fields {
		if value := reflect.ValueOf(request).Elem().FieldByName(field); value.IsValid() {
			indices = append(indices, uint32(value.Uint()))
		}
	}
	return indices
}

// replace deletes an interface and creates a foreign one, which gets the same index and is in a foreign
// bridge domain. The replacement of a port is down, because the agent might set the port up. Every other
// replacement is up, because the agent might set it down. A twin has the name of the deleted interface.
func (r *router) replace(victim *observe.Interface, twin bool) {
	r.t.Helper()
	s, up := r.snapshot(), interface_types.IF_STATUS_API_FLAG_ADMIN_UP
	theirs := interface_types.InterfaceIndex(victim.Index) // otherwise it does not work
	if isPort := !victim.IsSub() && tunnelAt(s, victim) == nil; isPort {
		r.must(&interfaces.DeleteLoopback{SwIfIndex: theirs})
		r.must(&interfaces.CreateLoopbackInstance{IsSpecified: true, UserInstance: 900})
	} else {
		r.deleteByHand(s, victim)
		if twin {
			r.subByHand(s.ByIndex(victim.Sup).Name, victim.Sub.ID, victim.Sub.Outer)
		} else {
			r.subByHand(r.ports[3], 900, 900)
		}
		r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: theirs, Flags: up})
	}
	r.must(&interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: theirs, Tag: "somebody's"})
	r.must(&l2.SwInterfaceSetL2Bridge{RxSwIfIndex: theirs, BdID: 900, Enable: true})
}

// describe returns all observed properties of an interface.
func describe(s *observe.Snapshot, index uint32) string {
	if s.ByIndex(index) == nil {
		return "nothing"
	}
	to, connected := s.Connects[index]
	return fmt.Sprintf("%+v, bridge %d, cross-connect %v %d, policed %v", *s.ByIndex(index), s.Bridged[index], connected, to, s.Policed[index] || s.Classified[index])
}

// steps lists the changes of a line: it is created, changed in place, given another key, and removed.
var steps = []struct {
	name   string
	change func(*intent.End)
}{
	{"add", func(*intent.End) {}},
	{"change in place", func(e *intent.End) {
		e.Revision, e.AdminUp, e.Frame = 2, false, 9500
		if e.Bandwidth != (intent.Bandwidth{}) {
			e.Bandwidth.CIR *= 2
		}
	}},
	{"another key", func(e *intent.End) {
		if e.Revision, e.AdminUp = 3, true; e.Access.Outer != 0 {
			e.Access.Outer += 50
		}
		if e.Tunnel.VNI != 0 {
			e.Tunnel.VNI += 50
		}
	}},
	{"remove", nil},
}

// changed changes all ends in the same way.
func changed(ends []intent.End, n int) []intent.End {
	for i := range ends {
		steps[n].change(&ends[i])
	}
	return ends
}

func gone(ends []intent.End) (tombstones []intent.Tombstone) {
	for _, end := range ends {
		tombstones = append(tombstones, tombstone(end))
	}
	return tombstones
}

// replaceable returns a line of a kind. The kinds differ in their messages.
func (r *router) replaceable(kind string) []intent.End {
	end := vxlanEnd(1, r.ports[0])
	switch kind {
	case "policed VLAN":
		end.Bandwidth = profile
	case "whole port":
		end.Access, end.Bandwidth = accessOf(intent.Untagged, r.ports[1]), profile
	case "GRE under a port that is down":
		end.Access.Interface, end.Frame = r.ports[2], 9100
		end.Tunnel.Encapsulation, end.Tunnel.VNI, end.Tunnel.Remote = intent.GRE, 0, remotes[4].Next()
	case "local":
		end.Tunnel = intent.Tunnel{Encapsulation: intent.L2XC}
		other := end
		other.End, other.Access.Interface = "z", r.ports[1]
		return []intent.End{end, other}
	case "many":
		var ends []intent.End
		for n := range manyLines {
			ends = append(ends, vxlanEnd(200+n, r.ports[0]))
		}
		return ends
	}
	return []intent.End{end}
}

// TestInterfaceThatReusesAnIndexIsNotChanged replaces an interface of a line immediately before each round
// of changes of each step. VPP reuses the index at once. Without VPP's stats segment, the agent reads
// everything before each change.
func TestInterfaceThatReusesAnIndexIsNotChanged(t *testing.T) {
	for _, kind := range []string{
		"VLAN", "VLAN, by one of the same name", "policed VLAN", "whole port", "GRE under a port that is down", "local", "VLAN, with no stats segment",
	} {
		for to := range steps {
			t.Run(kind+"/"+steps[to].name, func(t *testing.T) {
				onEveryVPP(t, func(t *testing.T, r *router) {
					var epoch func(int64) (int64, error)
					if kind != "VLAN, with no stats segment" {
						epoch = statseg.NewReopeningSegment(r.stats).Epoch
					}
					other := vxlanEnd(9, r.ports[0])
					r.put([]intent.End{other}).mustAllBe(t, "verified")
					for nth, any := 0, true; any; nth++ {
						any = false
						for after, ended := 0, false; !ended; after++ {
							var replaced bool
							replaced, ended = r.replaceOnce(t, epoch, other, kind, to, nth, after)
							any = any || replaced
							if t.Failed() {
								t.Fatalf("interface %d of the line, after %d rounds of changes", nth, after)
							}
							if after > 50 {
								t.Fatal("there cannot be so many rounds")
							}
						}
						if nth == 0 && !any {
							t.Fatal("nothing was replaced: the test shows nothing")
						}
					}
				})
			})
		}
	}
}

// TestInterfaceThatReusesAnIndexAmongManyIsNotChanged is the same for so many lines that the agent reads
// the objects of a stage as a whole, and then sends the changes in many rounds.
func TestInterfaceThatReusesAnIndexAmongManyIsNotChanged(t *testing.T) {
	for to := range steps {
		t.Run(steps[to].name, func(t *testing.T) {
			onEveryVPP(t, func(t *testing.T, r *router) {
				epoch := statseg.NewReopeningSegment(r.stats).Epoch
				other := vxlanEnd(999, r.ports[0])
				r.put([]intent.End{other}).mustAllBe(t, "verified")
				for _, nth := range []int{0, 2*manyLines - 1} {
					any := false
					for after, ended := 0, false; !ended; after++ {
						var replaced bool
						replaced, ended = r.replaceOnce(t, epoch, other, "many", to, nth, after)
						any = any || replaced
						if t.Failed() {
							t.Fatalf("interface %d of the lines, after %d rounds of changes", nth, after)
						}
					}
					if !any {
						t.Fatal("nothing was replaced: the test shows nothing")
					}
				}
			})
		})
	}
}

// manyLines is enough for several rounds of changes of each kind.
const manyLines = 70

// replaceOnce brings a line to the start of a step, and replaces its nth interface during the step. ended
// means that there were not so many rounds; replaced means that the line had such an interface.
func (r *router) replaceOnce(
	t *testing.T, epoch func(int64) (int64, error), other intent.End, kind string, to, nth, after int,
) (replaced, ended bool) {
	t.Helper()
	ends := r.replaceable(kind)
	if kind == "GRE under a port that is down" {
		r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: r.index(r.ports[2])})
	}
	belongs := r.belongs(ends)
	for n := range to {
		r.put(append([]intent.End{other}, changed(ends, n)...)).mustAllBe(t, "verified")
	}
	session := &sessionWithMeddler{Session: r.session, epoch: epoch, left: after, foreign: observe.NoIndex}
	if r.options.Epoch = nil; epoch != nil {
		r.options.Epoch = session.Epoch
	}
	sameName := strings.Contains(kind, "same name")
	var victim *observe.Interface
	var was string
	session.meddle = func() {
		candidates := slices.DeleteFunc(slices.Clone(r.snapshot().Interfaces), func(i *observe.Interface) bool {
			return !belongs(i) || sameName && !i.IsSub()
		})
		if nth < len(candidates) {
			victim = candidates[nth]
			r.replace(victim, sameName)
			session.foreign, was = victim.Index, describe(r.snapshot(), victim.Index)
		}
	}
	r.use(session)
	var outcome *Outcome
	if steps[to].change == nil {
		outcome = r.put([]intent.End{other}, gone(ends)...)
	} else {
		outcome = r.put(append([]intent.End{other}, changed(ends, to)...))
	}
	r.use(r.session)
	if victim != nil {
		mustBeLeftAlone := func() {
			t.Helper()
			if len(session.touched) != 0 {
				t.Errorf("theirs, once %s, was touched by %v", plan.Describe(victim), session.touched)
			}
			if now := describe(r.snapshot(), victim.Index); now != was {
				t.Errorf("theirs is\n%s\nand was\n%s", now, was)
			}
		}
		mustBeLeftAlone()
		s := r.snapshot()
		theirs := plan.Describe(s.ByIndex(victim.Index))
		for _, end := range outcome.Ends {
			if end.Reason == nil {
				continue
			}
			names := end.Reason.Object == theirs || s.ByName(end.Reason.Object) == nil // objects that were deleted with it, or not created
			if end.Key == other.Key || end.Status == "failed" || !names {
				t.Errorf("%s is %s, %+v, and theirs is %s", end.Key, end.Status, end.Reason, theirs)
			}
		}
		r.use(session)
		r.Converge(t.Context())
		r.use(r.session)
		mustBeLeftAlone()
		r.takeAway(victim)
	}
	for _, end := range r.Converge(t.Context()).Ends {
		if end.Reason != nil {
			t.Errorf("once theirs is gone, %s is %s, %+v", end.Key, end.Status, end.Reason)
		}
	}
	if steps[to].change != nil {
		r.put([]intent.End{other}, gone(ends)...)
	}
	return victim != nil, !session.meddled
}

// use gives the engine a session of the same connection, so that it keeps its observations.
func (r *router) use(session Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Engine.session = session
}

// belongs returns a function that recognizes interfaces of these ends: new ones, and the ports that the
// ends have as a whole.
func (r *router) belongs(ends []intent.End) func(*observe.Interface) bool {
	known := make(map[string]bool)
	for _, i := range r.snapshot().Interfaces {
		known[i.Name] = true
	}
	for _, end := range ends {
		if port := r.snapshot().ByName(end.Access.Interface); end.Access.Tagging == intent.Untagged || !port.AdminUp {
			delete(known, port.Name)
		}
	}
	return func(i *observe.Interface) bool { return !known[i.Name] }
}

// takeAway deletes the replacement of an interface, and creates a port again.
func (r *router) takeAway(victim *observe.Interface) {
	r.t.Helper()
	s := r.snapshot()
	theirs := interface_types.InterfaceIndex(victim.Index)
	r.must(&l2.SwInterfaceSetL2Bridge{RxSwIfIndex: theirs, BdID: 900})
	if i := s.ByIndex(victim.Index); i.IsSub() {
		r.deleteByHand(s, i)
		return
	}
	r.must(&interfaces.DeleteLoopback{SwIfIndex: theirs})
	var instance uint32
	fmt.Sscanf(victim.Name, "loop%d", &instance)
	r.portByHand(instance)
}
