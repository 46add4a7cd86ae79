package plan

import (
	"testing"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
)

func dot1q(outer uint16, exact bool) intent.Access {
	return intent.Access{Interface: "cust0", Tagging: intent.Dot1q, Outer: outer, Exact: exact}
}

func twoTags(tagging intent.Tagging, outer, inner uint16, exact bool) intent.Access {
	return intent.Access{Interface: "cust0", Tagging: tagging, Outer: outer, Inner: inner, Exact: exact}
}

func subOf(a intent.Access) observe.SubInterface {
	return observe.SubInterface{
		ID: 9, Tags: uint8(a.Tagging.Tags()), Dot1ad: a.Tagging == intent.Dot1ad, Exact: a.Exact, Outer: a.Outer, Inner: a.Inner,
	}
}

// sharing has the foreign sub-interface on the port, the ordered access, and whether VPP would give one of
// them frames of the other.
var sharing = map[string]struct {
	theirs observe.SubInterface
	ours   intent.Access
	shared bool
	// takesOurs: the foreign one is more specific, so it takes frames of the agent's. The order of their
	// creation does not matter.
	takesOurs bool
}{
	"one VLAN with further tags, ours has two VLANs": {subOf(dot1q(100, false)), twoTags(intent.QinQ, 100, 110, true), true, false},
	"one VLAN exactly, ours has two VLANs":           {subOf(dot1q(100, true)), twoTags(intent.QinQ, 100, 110, true), false, false},
	"any inner VLAN, ours has two VLANs": {
		observe.SubInterface{ID: 9, Tags: 2, Outer: 200, Selection: observe.AnyInner}, twoTags(intent.QinQ, 200, 110, true), true, false},
	"any inner VLAN of another outer VLAN": {
		observe.SubInterface{ID: 9, Tags: 2, Outer: 201, Selection: observe.AnyInner}, twoTags(intent.QinQ, 200, 110, true), false, false},
	"any inner VLAN, ours has one VLAN exactly": {
		observe.SubInterface{ID: 9, Tags: 2, Outer: 200, Selection: observe.AnyInner}, dot1q(200, true), false, false},
	"any inner VLAN, ours has one VLAN with further tags": {
		observe.SubInterface{ID: 9, Tags: 2, Outer: 200, Selection: observe.AnyInner}, dot1q(200, false), true, true},
	"two VLANs, ours has one VLAN with further tags": {subOf(twoTags(intent.QinQ, 100, 110, true)), dot1q(100, false), true, true},
	"two VLANs, ours has one VLAN exactly":           {subOf(twoTags(intent.QinQ, 100, 110, true)), dot1q(100, true), false, false},
	"two VLANs of another inner VLAN":                {subOf(twoTags(intent.QinQ, 100, 111, false)), twoTags(intent.QinQ, 100, 110, false), false, false},
	"the same two VLANs with further tags":           {subOf(twoTags(intent.QinQ, 100, 110, false)), twoTags(intent.QinQ, 100, 110, true), true, false},
	"802.1Q with further tags, ours is 802.1ad":      {subOf(dot1q(100, false)), twoTags(intent.Dot1ad, 100, 110, true), false, false},
	"802.1ad with one tag, ours is 802.1ad": {
		observe.SubInterface{ID: 9, Tags: 1, Dot1ad: true, Outer: 100}, twoTags(intent.Dot1ad, 100, 110, true), true, false},
	"802.1ad with one tag, ours is 802.1Q": {
		observe.SubInterface{ID: 9, Tags: 1, Dot1ad: true, Outer: 100}, twoTags(intent.QinQ, 100, 110, true), false, false},
	"802.1ad with two VLANs, ours is 802.1Q with further tags": {subOf(twoTags(intent.Dot1ad, 100, 110, true)), dot1q(100, false), false, false},
	"default, ours has one VLAN":                               {observe.SubInterface{ID: 9, Selection: observe.DefaultSub}, dot1q(100, true), true, false},
	"default, ours is 802.1ad":                                 {observe.SubInterface{ID: 9, Selection: observe.DefaultSub}, twoTags(intent.Dot1ad, 100, 110, true), true, false},
	"untagged":                                                 {observe.SubInterface{ID: 9, Exact: true, Selection: observe.UntaggedSub}, dot1q(100, false), false, false},
	"by MAC address":                                           {observe.SubInterface{ID: 9, Selection: observe.OtherThanTags}, dot1q(100, true), true, true},
}

func (m *model) foreign(sub observe.SubInterface) *observe.Interface {
	i := m.sub("cust0", sub.ID, intent.Access{}, "")
	i.Sub = sub
	return i
}

func TestASubInterfaceThatSharesFramesWithAForeignOneIsNotCreated(t *testing.T) {
	for name, c := range sharing {
		t.Run(name, func(t *testing.T) {
			m := newModel(t)
			theirs := m.foreign(c.theirs)
			e := end(1, func(e *intent.End) { e.Access = c.ours })
			p := m.diff(want(e))
			reason := p.Blocked[e.Key]
			switch {
			case !c.shared && reason != nil:
				t.Errorf("blocked: %+v", reason)
			case c.shared && (reason == nil || reason.Code != "foreign_subinterface" || reason.Object != Describe(theirs) || len(p.Ops) != 0):
				t.Errorf("reason %+v, operations %v", reason, lines(p.Ops))
			}
			create := Op{Action: CreateSub{RefTo(m.port("cust0")), 5000, c.ours, Ref{}}}
			if withheld := NewCreateCheck(m.s).Verify(create); (withheld != nil) != c.shared {
				t.Errorf("right before the create: %+v", withheld)
			}
		})
	}
}

func TestALineThatLosesFramesToAMoreSpecificSubInterfaceReportsIt(t *testing.T) {
	for name, c := range sharing {
		if c.shared && subOf(c.ours) == (observe.SubInterface{
			ID: 9, Tags: c.theirs.Tags, Dot1ad: c.theirs.Dot1ad, Exact: subOf(c.ours).Exact, Outer: c.theirs.Outer, Inner: c.theirs.Inner,
		}) && !c.theirs.Wide() {
			continue // VPP refuses a second sub-interface with the same VLANs
		}
		t.Run(name, func(t *testing.T) {
			m := newModel(t)
			e := end(1, func(e *intent.End) { e.Access = c.ours })
			m.carryOut(m.diff(want(e)).Ops)
			m.foreign(c.theirs)
			p := m.diff(want(e))
			if reason := p.Blocked[e.Key]; (reason != nil) != c.takesOurs || reason != nil && reason.Code != "foreign_subinterface" {
				t.Errorf("reason %+v", reason)
			}
			if len(p.Ops) != 0 {
				t.Errorf("operations %v", lines(p.Ops))
			}
			removed := want()
			removed.Removed = []intent.Tombstone{{Key: e.Key, Revision: e.Revision}}
			m.carryOut(m.diff(removed).Ops)
			if m.s.ByName("cust0.9") == nil {
				t.Error("theirs is gone with ours")
			}
		})
	}
}
