package apply

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/vxlan"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/plan"
)

var (
	alice, bob    = intent.Key{VLL: "alice", End: "a"}, intent.Key{VLL: "bob", End: "a"}
	local, remote = netip.MustParseAddr("10.255.0.1"), netip.MustParseAddr("10.255.0.2")
)

// session answers 0 to everything but what the test refuses, and gives out indices from 10.
type session struct {
	refuse func(api.Message) int32
	lacks  string
	err    error
	sent   []string
	next   index
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
		switch request.(type) {
		case *interfaces.CreateSubif:
			replies = append(replies, &interfaces.CreateSubifReply{Retval: retval, SwIfIndex: 10 + s.next})
		case *vxlan.VxlanAddDelTunnelV3:
			replies = append(replies, &vxlan.VxlanAddDelTunnelV3Reply{Retval: retval, SwIfIndex: 10 + s.next})
		case *l2.SwInterfaceSetL2Xconnect:
			replies = append(replies, &l2.SwInterfaceSetL2XconnectReply{Retval: retval})
		default:
			replies = append(replies, &interfaces.SwInterfaceTagAddDelReply{Retval: retval})
		}
	}
	return replies, nil
}

// looks shows the same whenever somebody looks.
type looks struct{ *observe.Snapshot }

func (l looks) Again(context.Context) (*observe.Snapshot, error)           { return l.Index(), nil }
func (l looks) Ports(context.Context, []uint32) (*observe.Snapshot, error) { return l.Index(), nil }

// ports is a snapshot of these interfaces, by default of the port that build uses.
func ports(interfaces ...*observe.Interface) *observe.Snapshot {
	if interfaces == nil {
		interfaces = []*observe.Interface{{Index: 1, Sup: 1, Name: "cust0"}}
	}
	return (&observe.Snapshot{Interfaces: interfaces}).Index()
}

// build is what makes an end: a tunnel, a sub-interface, their tags, the cross-connect.
func build(end intent.Key, vni uint32) []plan.Op {
	access := plan.Ref{Index: observe.NoIndex, Made: plan.Made{End: end, Role: plan.Access}, Name: "cust0.100"}
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

func TestARefusalStopsThatEndAloneAndWhatItMadeIsStillTagged(t *testing.T) {
	s := &session{refuse: func(m api.Message) int32 {
		if tunnel, ok := m.(*vxlan.VxlanAddDelTunnelV3); ok && tunnel.Vni == 1 {
			return -75
		}
		return 0
	}}
	result, err := Run(t.Context(), s, both(), nil, looks{ports()})
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
	if tags != 3 || connects != 1 { // alice's sub-interface, both of bob's; bob alone is connected
		t.Errorf("%d tags, %d cross-connects", tags, connects)
	}
	if len(result.Untagged) != 0 || result.Writes != len(s.sent) {
		t.Errorf("untagged %v, %d writes of %d", result.Untagged, result.Writes, len(s.sent))
	}
}

func TestARefusedTagLeavesTheClaim(t *testing.T) {
	s := &session{refuse: func(m api.Message) int32 {
		if _, ok := m.(*interfaces.SwInterfaceTagAddDel); ok {
			return -2
		}
		return 0
	}}
	result, err := Run(t.Context(), s, build(alice, 1), nil, looks{ports()})
	if err != nil || len(result.Untagged) != 2 || result.Failed[alice] == nil {
		t.Errorf("%v %+v", err, result)
	}
}

func TestAMessageThatVPPLacksIsUnsupported(t *testing.T) {
	s := &session{lacks: "create_subif"}
	result, err := Run(t.Context(), s, build(alice, 1), nil, looks{ports()})
	if err != nil || result.Failed[alice] == nil || result.Failed[alice].Code != "unsupported" {
		t.Errorf("%v %+v", err, result.Failed[alice])
	}
}

func TestTheEndOfTheSessionIsAnErrorAndNotAFailureOfTheEnds(t *testing.T) {
	gone := errors.New("gone")
	result, err := Run(t.Context(), &session{err: gone}, build(alice, 1), nil, looks{ports()})
	if !errors.Is(err, gone) || len(result.Failed) != 0 {
		t.Errorf("%v %+v", err, result.Failed)
	}
}

func TestNothingIsDeletedThatIsNoLongerWhatWasPlannedFor(t *testing.T) {
	sub := &observe.Interface{Index: 7, Sup: 1, Name: "cust0.100", Tag: "ours"}
	op := plan.Op{Stage: plan.Delete, End: alice, Action: plan.DeleteSub{Sub: plan.RefTo(sub), Tag: "ours"}}
	for name, c := range map[string]struct {
		now     *observe.Interface
		deleted bool
	}{
		"unchanged":     {&observe.Interface{Index: 7, Sup: 1, Name: "cust0.100", Tag: "ours"}, true},
		"another tag":   {&observe.Interface{Index: 7, Sup: 1, Name: "cust0.100", Tag: "theirs"}, false},
		"another name":  {&observe.Interface{Index: 7, Sup: 1, Name: "cust0.200", Tag: "ours"}, false},
		"another index": {&observe.Interface{Index: 8, Sup: 1, Name: "cust0.100", Tag: "ours"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &session{}
			result, err := Run(t.Context(), s, []plan.Op{op}, nil, looks{&observe.Snapshot{Interfaces: []*observe.Interface{c.now}}})
			if err != nil {
				t.Fatal(err)
			}
			if deleted := len(s.sent) == 1; deleted != c.deleted || (result.Failed[alice] == nil) != c.deleted {
				t.Errorf("sent %v, failed %+v", s.sent, result.Failed[alice])
			}
		})
	}
}

func TestAVLANWhoseDeletionFailedIsNotCreatedAgain(t *testing.T) {
	old := &observe.Interface{Index: 7, Sup: 1, Name: "cust0.100", Tag: "ours", Sub: observe.SubInterface{ID: 100, Tags: 1, Outer: 100, Exact: true}}
	port := &observe.Interface{Index: 1, Sup: 1, Name: "cust0"}
	ops := []plan.Op{
		{Stage: plan.Delete, End: alice, Action: plan.DeleteSub{Sub: plan.RefTo(old), Tag: "ours"}},
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
	result, err := Run(t.Context(), s, ops, nil, looks{now})
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(s.sent, "create_subif") || result.Failed[bob] == nil {
		t.Errorf("sent %v: a duplicate VLAN stops the traffic of the first", s.sent)
	}
}

func TestWhatStandsThereByNowIsNotCreatedEvenIfThePlanSaysSo(t *testing.T) {
	there := &observe.Interface{Index: 7, Sup: 1, Name: "cust0.9", Sub: observe.SubInterface{ID: 9, Tags: 1, Outer: 1, Exact: true}}
	s := &session{}
	now := ports(&observe.Interface{Index: 1, Sup: 1, Name: "cust0"}, there)
	result, err := Run(t.Context(), s, build(alice, 1), nil, looks{now})
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(s.sent, "create_subif") || result.Failed[alice] == nil {
		t.Errorf("sent %v: a duplicate VLAN stops the traffic of the first", s.sent)
	}
}
