package apply

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/vxlan"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/plan"
)

var (
	alice, bob    = intent.Key{VLL: "alice", End: "a"}, intent.Key{VLL: "bob", End: "a"}
	local, remote = netip.MustParseAddr("10.255.0.1"), netip.MustParseAddr("10.255.0.2")
)

// session answers 0 to every request that the test does not refuse, and assigns indices from 10.
type session struct {
	refuse   func(api.Message) int32
	lacks    string
	err      error
	sent     []string
	next     interface_types.InterfaceIndex
	existing observe.Snapshot // in addition to the snapshot before
	made     func()           // called after everything is created
}

func (s *session) Has(m api.Message) bool { return m.GetMessageName() != s.lacks }

func (s *session) Calls(_ context.Context, requests []api.Message) ([]api.Message, error) {
	if s.err != nil {
		return nil, s.err
	}
	var replies []api.Message
	for _, request := range requests {
		s.sent = append(s.sent, request.GetMessageName())
		retval := int32(0)
		if s.refuse != nil {
			retval = s.refuse(request)
		}
		s.next++
		switch m := request.(type) {
		case *interfaces.CreateSubif:
			s.existing.Interfaces = append(s.existing.Interfaces, &observe.Interface{Index: uint32(10 + s.next), Sup: uint32(m.SwIfIndex),
				Name: fmt.Sprintf("cust0.%d", m.SubID), Sub: observe.SubInterface{ID: m.SubID, Tags: 1, Outer: m.OuterVlanID, Exact: true}})
			replies = append(replies, &interfaces.CreateSubifReply{Retval: retval, SwIfIndex: 10 + s.next})
		case *vxlan.VxlanAddDelTunnelV3:
			at := uint32(10 + s.next)
			s.existing.Interfaces = append(s.existing.Interfaces, &observe.Interface{Index: at, Sup: at, Name: "vxlan_tunnel0"})
			s.existing.Tunnels = append(s.existing.Tunnels, &observe.Tunnel{Index: at, Default: true,
				Tunnel: intent.Tunnel{Encapsulation: intent.VXLAN, Local: local, Remote: remote, VNI: m.Vni}})
			replies = append(replies, &vxlan.VxlanAddDelTunnelV3Reply{Retval: retval, SwIfIndex: 10 + s.next})
		case *l2.SwInterfaceSetL2Xconnect:
			replies = append(replies, &l2.SwInterfaceSetL2XconnectReply{Retval: retval})
		case *interfaces.SwInterfaceTagAddDel:
			for _, i := range s.existing.Interfaces {
				if i.Index == uint32(m.SwIfIndex) && retval == 0 {
					i.Tag = m.Tag
				}
			}
			replies = append(replies, &interfaces.SwInterfaceTagAddDelReply{Retval: retval})
		default:
			replies = append(replies, &interfaces.DeleteSubifReply{Retval: retval})
		}
	}
	if s.made != nil && len(s.existing.Tunnels) > 0 {
		s.made()
		s.made = nil
	}
	return replies, nil
}

// observations returns the same snapshot for every reading, plus the created interfaces that a reading
// names.
type observations struct {
	*observe.Snapshot
	session *session
}

func (l observations) Epoch() int64 { return 0 }

func (l observations) ByIndex(context.Context, *observe.NamedByIndex) (*observe.Snapshot, error) {
	return (&observe.Snapshot{
		Interfaces: append(slices.Clone(l.Interfaces), l.session.existing.Interfaces...), Tunnels: l.session.existing.Tunnels,
	}).Index(), nil
}

func (l observations) AllInterfaces(ctx context.Context, _ bool) (*observe.Snapshot, error) {
	return l.ByIndex(ctx, nil)
}
func (l observations) Reread(context.Context) (*observe.Snapshot, error) { return l.Index(), nil }
func (l observations) Ports(context.Context, []uint32) (*observe.Snapshot, error) {
	return l.Index(), nil
}

// ports returns a snapshot of these interfaces, by default of the port that build uses.
func ports(interfaces ...*observe.Interface) *observe.Snapshot {
	if interfaces == nil {
		interfaces = []*observe.Interface{{Index: 1, Sup: 1, Name: "cust0"}}
	}
	return (&observe.Snapshot{Interfaces: interfaces}).Index()
}

// run sends operations that were planned from the existing interfaces.
func run(t *testing.T, s *session, ops []plan.Op, now *observe.Snapshot) (*Result, error) {
	return Run(t.Context(), s, ops, now, nil, observations{now, s})
}

// build returns the operations that create an end: tunnel, sub-interface, tags and cross-connect.
func build(end intent.Key, vni uint32) []plan.Op {
	access := plan.Ref{Index: observe.NoIndex, Made: plan.Made{End: end, Role: plan.Access}, Name: fmt.Sprintf("cust0.%d", vni)}
	tunnel := plan.Ref{Index: observe.NoIndex, Made: plan.Made{End: end, Role: plan.Tunnel}, Name: "vxlan_tunnel<new>"}
	return []plan.Op{
		{Stage: plan.Create, End: end, Action: plan.CreateTunnel{Tunnel: intent.Tunnel{Encapsulation: intent.VXLAN, Local: local, Remote: remote, VNI: vni}, Interface: tunnel}},
		{Stage: plan.Create, End: end, Action: plan.CreateSub{
			Port: plan.Ref{Index: 1, Name: "cust0"}, ID: vni, Sub: access,
			Access: intent.Access{Interface: "cust0", Tagging: intent.Dot1q, Outer: uint16(vni), Exact: true},
		}},
		{Stage: plan.Tag, End: end, Action: plan.SetTag{Interface: access, Tag: "tag"}},
		{Stage: plan.Tag, End: end, Action: plan.SetTag{Interface: tunnel, Tag: "tag"}},
		{Stage: plan.Connect, End: end, Action: plan.SetConnect{From: access, To: tunnel}},
	}
}

func both() []plan.Op {
	ops := append(build(alice, 1), build(bob, 2)...)
	slices.SortStableFunc(ops, func(a, b plan.Op) int { return int(a.Stage - b.Stage) })
	return ops
}

func TestARefusalStopsOnlyThatEndAndItsCreatedObjectsAreStillTagged(t *testing.T) {
	s := &session{refuse: func(m api.Message) int32 {
		if tunnel, ok := m.(*vxlan.VxlanAddDelTunnelV3); ok && tunnel.Vni == 1 {
			return -75
		}
		return 0
	}}
	result, err := run(t, s, both(), ports())
	if err != nil {
		t.Fatal(err)
	}
	r := result.Failed[alice]
	if r == nil || r.Status != "failed" || r.Code != "vpp_refused" || r.Retval != -75 || r.VPPMessage != "vxlan_add_del_tunnel_v3" {
		t.Errorf("alice: %+v", r)
	}
	if result.Failed[bob] != nil {
		t.Errorf("bob: %+v", result.Failed[bob])
	}
	tags, connects := 0, 0
	for _, name := range s.sent {
		switch name {
		case "sw_interface_tag_add_del":
			tags++
		case "sw_interface_set_l2_xconnect":
			connects++
		}
	}
	if tags != 3 || connects != 1 { // alice's sub-interface, both of bob's; only bob is connected
		t.Errorf("%d tags, %d cross-connects", tags, connects)
	}
	if len(result.Untagged) != 0 || result.Writes != len(s.sent) {
		t.Errorf("untagged %v, %d writes of %d", result.Untagged, result.Writes, len(s.sent))
	}
}

func TestARefusedTagKeepsTheClaim(t *testing.T) {
	s := &session{refuse: func(m api.Message) int32 {
		if _, ok := m.(*interfaces.SwInterfaceTagAddDel); ok {
			return -2
		}
		return 0
	}}
	result, err := run(t, s, build(alice, 1), ports())
	if err != nil || len(result.Untagged) != 2 || result.Failed[alice] == nil {
		t.Errorf("%v %+v", err, result)
	}
}

func TestAMessageThatVPPLacksIsUnsupported(t *testing.T) {
	s := &session{lacks: "create_subif"}
	result, err := run(t, s, build(alice, 1), ports())
	if err != nil || result.Failed[alice] == nil || result.Failed[alice].Code != "unsupported" {
		t.Errorf("%v %+v", err, result.Failed[alice])
	}
}

func TestALostSessionIsAnErrorAndNotAFailureOfTheEnds(t *testing.T) {
	gone := errors.New("gone")
	result, err := run(t, &session{err: gone}, build(alice, 1), ports())
	if !errors.Is(err, gone) || len(result.Failed) != 0 {
		t.Errorf("%v %+v", err, result.Failed)
	}
}

func TestOperationsOnObjectsThatChangedSincePlanningAreNotSent(t *testing.T) {
	was := observe.Interface{Index: 7, Sup: 1, Name: "cust0.100", Tag: "ours", Sub: observe.SubInterface{ID: 100, Tags: 1, Outer: 100}}
	tunnel := &observe.Interface{Index: 9, Sup: 9, Name: "vxlan_tunnel0", Tag: "ours"}
	sub, to := plan.RefTo(&was), plan.RefTo(tunnel)
	for name, change := range map[string]func(*observe.Interface){
		"unchanged":        func(*observe.Interface) {},
		"another tag":      func(i *observe.Interface) { i.Tag = "theirs" },
		"another name":     func(i *observe.Interface) { i.Name = "cust0.200" },
		"another VLAN":     func(i *observe.Interface) { i.Sub.Outer = 200 },
		"another device":   func(i *observe.Interface) { i.Device = "GRE" },
		"of another port":  func(i *observe.Interface) { i.Sup = 2 },
		"nothing is there": func(i *observe.Interface) { i.Index = 8 },
	} {
		for _, op := range []plan.Op{
			{Stage: plan.Detach, Action: plan.ClearConnect{From: sub, To: to}},
			{Stage: plan.Detach, Action: plan.SetPolicing{Policer: "policer", Interface: sub}},
			{Stage: plan.Delete, Action: plan.DeleteSub{Sub: sub}},
			{Stage: plan.Delete, Action: plan.DeleteTunnel{Tunnel: intent.Tunnel{Encapsulation: intent.VXLAN, Local: local, Remote: remote, VNI: 1}, Interface: sub}},
			{Stage: plan.Create, Action: plan.CreateSub{Port: sub, ID: 5}},
			{Stage: plan.Tag, Action: plan.SetTag{Interface: sub, Tag: "new"}},
			{Stage: plan.Set, Action: plan.SetMTU{Interface: sub, MTU: 9000}},
			{Stage: plan.Set, Action: plan.SetRewrite{Interface: sub, Pop: plan.PopOne}},
			{Stage: plan.Connect, Action: plan.SetConnect{From: sub, To: to}},
			{Stage: plan.Connect, Action: plan.SetConnect{From: to, To: sub}},
			{Stage: plan.Up, Action: plan.SetAdmin{Interface: sub, Up: true}},
		} {
			t.Run(fmt.Sprintf("%s/%T", name, op.Action), func(t *testing.T) {
				op.End = alice
				is, s := was, &session{}
				change(&is)
				result, err := Run(t.Context(), s, []plan.Op{op}, ports(&was, tunnel), nil, observations{ports(&is, tunnel), s})
				if err != nil {
					t.Fatal(err)
				}
				reason := result.Failed[alice]
				if same := name == "unchanged"; same != (len(s.sent) == 1) || same != (reason == nil) {
					t.Errorf("sent %v, failed %+v", s.sent, reason)
				}
				if is.Index == was.Index && reason != nil && reason.Object != plan.Describe(&is) {
					t.Errorf("names %s and not what is there", reason.Object)
				}
			})
		}
	}
}

// TestAReplacementOfAJustCreatedInterfaceIsNotTagged: another user replaced the interface after VPP's reply
// gave its index.
func TestAReplacementOfAJustCreatedInterfaceIsNotTagged(t *testing.T) {
	for name, change := range map[string]func(made *observe.Snapshot){
		"another sub-interface":         func(made *observe.Snapshot) { made.Interfaces[1].Sub.Exact = false },
		"a tunnel":                      func(made *observe.Snapshot) { made.Interfaces[1].Sup = made.Interfaces[1].Index },
		"a tunnel with another key":     func(made *observe.Snapshot) { made.Tunnels[0].VNI++ },
		"something in a tunnel's place": func(made *observe.Snapshot) { made.Tunnels = nil },
		"a tunnel with a tag of theirs": func(made *observe.Snapshot) { made.Interfaces[0].Tag = "theirs" },
	} {
		t.Run(name, func(t *testing.T) {
			s := &session{}
			s.made = func() { change(&s.existing) }
			result, err := run(t, s, build(alice, 1), ports())
			if err != nil {
				t.Fatal(err)
			}
			if len(s.sent) != 3 || result.Failed[alice] == nil { // two are created, the other one is tagged
				t.Errorf("sent %v, failed %+v", s.sent, result.Failed[alice])
			}
			if len(result.Untagged) != 0 {
				t.Errorf("%v is claimed", result.Untagged)
			}
		})
	}
}

func TestAPolicerIsChangedOnlyIfItStillHasItsIndex(t *testing.T) {
	for _, action := range []plan.Action{plan.UpdatePolicer{Name: "ours", Index: 3}, plan.DeletePolicer{Name: "ours", Index: 3}} {
		for name, is := range map[string]map[string]*observe.Policer{
			"unchanged": {"ours": {Index: 3}}, "another's": {"theirs": {Index: 3}}, "nobody's": nil,
		} {
			t.Run(fmt.Sprintf("%T/%s", action, name), func(t *testing.T) {
				s := &session{}
				result, err := Run(t.Context(), s, []plan.Op{{Stage: plan.Set, End: alice, Action: action}}, ports(), nil,
					policers{observations{ports(), s}, is})
				if err != nil {
					t.Fatal(err)
				}
				if same := name == "unchanged"; same != (len(s.sent) == 1) || same != (result.Failed[alice] == nil) {
					t.Errorf("sent %v, failed %+v", s.sent, result.Failed[alice])
				}
			})
		}
	}
}

func TestAClassifyTableIsChangedOnlyIfItStillHasItsIndex(t *testing.T) {
	ours := plan.Table{Index: 3, Mark: ownership.TableMark(alice)}
	for _, action := range []plan.Action{
		plan.SetSession{Table: ours, Policer: "ours", Index: 2}, plan.DeleteTable{Table: ours},
		plan.SetClassifier{Table: ours, Interface: plan.Ref{Index: 1, Name: "cust0"}, On: true},
		plan.SetClassifier{Table: ours, Interface: plan.Ref{Index: 1, Name: "cust0"}},
	} {
		for name, is := range map[string]map[uint32]*observe.ClassifyTable{
			"unchanged": {3: {Index: 3, Mark: ours.Mark}}, "another's": {3: {Index: 3, Mark: ours.Mark + 1}}, "nobody's": nil,
		} {
			t.Run(fmt.Sprintf("%T/%s", action, name), func(t *testing.T) {
				s := &session{}
				observation := tables{policers{observations{ports(), s}, map[string]*observe.Policer{"ours": {Index: 2}}}, is}
				result, err := Run(t.Context(), s, []plan.Op{{Stage: plan.Set, End: alice, Action: action}}, ports(), nil, observation)
				if err != nil {
					t.Fatal(err)
				}
				if same := name == "unchanged"; same != (len(s.sent) == 1) || same != (result.Failed[alice] == nil) {
					t.Errorf("sent %v, failed %+v", s.sent, result.Failed[alice])
				}
			})
		}
	}
}

func TestNoSessionUsesAPolicerIndexThatVPPTruncates(t *testing.T) {
	s, ours := &session{}, plan.Table{Index: 3, Mark: ownership.TableMark(alice)}
	observation := tables{
		policers{observations{ports(), s}, map[string]*observe.Policer{"ours": {Index: 1 << 16}}}, map[uint32]*observe.ClassifyTable{3: {Index: 3, Mark: ours.Mark}},
	}
	op := plan.Op{Stage: plan.Set, End: alice, Action: plan.SetSession{Table: ours, Policer: "ours", Index: 1 << 16}}
	result, err := Run(t.Context(), s, []plan.Op{op}, ports(), nil, observation)
	if err != nil || len(s.sent) != 0 || result.Failed[alice] == nil || result.Failed[alice].Code != "unsupported" {
		t.Errorf("%v: sent %v, failed %+v", err, s.sent, result.Failed[alice])
	}
}

// tables adds these classify tables to the observation.
type tables struct {
	policers
	are map[uint32]*observe.ClassifyTable
}

func (c tables) ByIndex(ctx context.Context, named *observe.NamedByIndex) (*observe.Snapshot, error) {
	s, err := c.policers.ByIndex(ctx, named)
	s.Interfaces, s.Tables = c.Interfaces, c.are
	return s.Index(), err
}

// policers adds these policers to the observation.
type policers struct {
	observations
	are map[string]*observe.Policer
}

func (p policers) ByIndex(context.Context, *observe.NamedByIndex) (*observe.Snapshot, error) {
	return (&observe.Snapshot{Policers: p.are}).Index(), nil
}

func TestAVLANWhoseDeletionFailedIsNotCreatedAgain(t *testing.T) {
	old := &observe.Interface{Index: 7, Sup: 1, Name: "cust0.100", Tag: "ours", Sub: observe.SubInterface{ID: 100, Tags: 1, Outer: 100, Exact: true}}
	port := &observe.Interface{Index: 1, Sup: 1, Name: "cust0"}
	ops := []plan.Op{
		{Stage: plan.Delete, End: alice, Action: plan.DeleteSub{Sub: plan.RefTo(old)}},
		{Stage: plan.Create, End: bob, Action: plan.CreateSub{Port: plan.RefTo(port), ID: 5000,
			Access: intent.Access{Interface: "cust0", Tagging: intent.Dot1q, Outer: 100, Exact: true}}},
	}
	s := &session{refuse: func(m api.Message) int32 {
		if _, ok := m.(*interfaces.DeleteSubif); ok {
			return -1
		}
		return 0
	}}
	now := ports(port, old)
	result, err := run(t, s, ops, now)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(s.sent, "create_subif") || result.Failed[bob] == nil {
		t.Errorf("sent %v: a duplicate VLAN stops the traffic of the first", s.sent)
	}
}

func TestAnObjectThatExistsMeanwhileIsNotCreated(t *testing.T) {
	existing := &observe.Interface{Index: 7, Sup: 1, Name: "cust0.9", Sub: observe.SubInterface{ID: 9, Tags: 1, Outer: 1, Exact: true}}
	s := &session{}
	now := ports(&observe.Interface{Index: 1, Sup: 1, Name: "cust0"}, existing)
	result, err := run(t, s, build(alice, 1), now)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(s.sent, "create_subif") || result.Failed[alice] == nil {
		t.Errorf("sent %v: a duplicate VLAN stops the traffic of the first", s.sent)
	}
}
