package plan

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
)

func tested(e *intent.End) { e.Testing = true }

func withProfile(e *intent.End) { e.Bandwidth = intent.Bandwidth{CIR: 1e6, CBS: 64000} }

// settle carries the plan out and checks that a second one is empty.
func (m *model) settle(t *testing.T, in *intent.Intent) *Plan {
	t.Helper()
	m.carryOut(m.diff(in).Ops)
	left := m.diff(in)
	if len(left.Ops) != 0 || len(left.Blocked) != 0 {
		t.Fatalf("left to do: %v, blocked: %v", lines(left.Ops), left.Blocked)
	}
	return left
}

func TestANewLineUnderTestIsBuiltButNotConnected(t *testing.T) {
	m := newModel(t)
	e := end(1, tested)
	wanted := []string{
		"create: create vxlan tunnel src 10.255.0.1 dst 10.255.0.2 vni 1001",
		"create: create sub-interfaces cust0 101 dot1q 101 exact-match",
		"tag: set interface tag cust0.101 " + tagOf(e),
		"tag: set interface tag vxlan_tunnel<new> " + tagOf(e),
		"up: set interface state cust0.101 up",
	}
	if got := lines(m.diff(want(e)).Ops); !slices.Equal(got, wanted) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(wanted, "\n"))
	}
	m.settle(t, want(e))
	if len(m.s.Connects) != 0 {
		t.Errorf("cross-connects: %v", m.s.Connects)
	}
	wanted = []string{
		"set: set interface l2 tag-rewrite cust0.101 pop 1",
		"connect: set interface l2 xconnect cust0.101 vxlan_tunnel5",
		"connect: set interface l2 xconnect vxlan_tunnel5 cust0.101",
	}
	if got := lines(m.diff(want(end(1))).Ops); !slices.Equal(got, wanted) {
		t.Errorf("handed over by\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(wanted, "\n"))
	}
}

func TestALineInServiceIsDisconnectedForATestAndReconnected(t *testing.T) {
	for name, change := range map[string]func(*intent.End){
		"a VLAN":       func(*intent.End) {},
		"two VLANs":    func(e *intent.End) { e.Access.Tagging, e.Access.Inner = intent.QinQ, 7 },
		"GRE":          gre,
		"a whole port": wholePort("cust1"),
		"down":         func(e *intent.End) { e.AdminUp = false },
	} {
		for _, policing := range []observe.Policing{
			observe.NoPolicing, observe.PortPolicing, observe.SubInterfacePolicing, observe.ClassifierPolicing,
		} {
			t.Run(name+" with policing "+string(policing), func(t *testing.T) {
				m := newModel(t)
				m.s.Policing = policing
				inService, apart := want(end(1, change, withProfile)), want(end(1, change, withProfile, tested))
				policed := m.settle(t, inService).Policed[inService.Present[0].Key]
				before := m.picture(everything)
				left := m.settle(t, apart)
				mustBeApart(t, apart.Present[0], m.s, left)
				if left.Policed[apart.Present[0].Key] {
					t.Error("reported as policed while tested")
				}
				if m.s.Policers[ownership.PolicerName(apart.Present[0].Key)] == nil && policed {
					t.Error("the policer, and with it what it counted, is gone")
				}
				if again := m.settle(t, inService); again.Policed[inService.Present[0].Key] != policed {
					t.Error("policed otherwise after the test")
				}
				mustEqual(t, m.picture(everything), before)
			})
		}
	}
}

func TestARemovedLineUnderTestLeavesNothing(t *testing.T) {
	m := newModel(t)
	before := m.picture(everything)
	e := end(1, withProfile, tested)
	m.settle(t, want(e))
	m.settle(t, m.without(e))
	mustEqual(t, m.picture(everything), before)
	if len(m.s.Policers) != 0 {
		t.Errorf("policers: %v", m.s.Policers)
	}
}

func TestForeignCrossConnectsStayWhileALineIsTested(t *testing.T) {
	for name, disturb := range map[string]func(m *model, foreign *observe.Interface){
		"it sends into the tunnel": func(m *model, foreign *observe.Interface) {
			m.s.Connects[foreign.Index] = m.s.Tunnels[0].Index
		},
		"it sends into the access": func(m *model, foreign *observe.Interface) {
			m.s.Connects[foreign.Index] = m.port("cust0.101").Index
		},
		"the port is connected with it": func(m *model, foreign *observe.Interface) {
			m.s.Connects[m.port("cust0").Index], m.s.Connects[foreign.Index] = foreign.Index, m.port("cust0").Index
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t)
			m.settle(t, want(end(1)))
			foreign := m.sub("cust3", 9, intent.Access{Tagging: intent.Dot1q, Outer: 9, Exact: true}, "somebody's")
			disturb(m, foreign)
			before := maps.Clone(m.s.Connects)
			p := m.diff(want(end(1, tested)))
			if len(p.Ops) != 0 || p.Blocked[end(1).Key] == nil || p.Blocked[end(1).Key].Status != "conflict" {
				t.Errorf("operations %v, blocked %v", lines(p.Ops), p.Blocked)
			}
			m.carryOut(p.Ops)
			mustEqual(t, m.s.Connects, before)
		})
	}
}

func TestACrossConnectOfATestedTunnelIsRemoved(t *testing.T) {
	for name, join := range map[string]func(m *model, tunnel uint32){
		"to its access":   func(m *model, tunnel uint32) { m.s.Connects[tunnel] = m.port("cust0.101").Index },
		"to a port":       func(m *model, tunnel uint32) { m.s.Connects[tunnel] = m.port("cust3").Index },
		"into a bridge":   func(m *model, tunnel uint32) { m.s.Bridged[tunnel] = 5 },
		"from its access": func(m *model, tunnel uint32) { m.s.Connects[m.port("cust0.101").Index] = tunnel },
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t)
			in := want(end(1, tested))
			m.settle(t, in)
			join(m, m.s.Tunnels[0].Index)
			if p := m.diff(in); len(p.Ops) != 1 || p.Ops[0].Drift.Field != "xconnect" || p.Ops[0].Drift.Desired != "" {
				t.Errorf("drift: %v", lines(p.Ops))
			}
			mustBeApart(t, in.Present[0], m.s, m.settle(t, in))
			if _, bridged := m.s.Bridged[m.s.Tunnels[0].Index]; bridged {
				t.Error("still bridged")
			}
		})
	}
}

// TestAForeignTaggedPortIsReleasedForATest: its cross-connect, which identifies it as the line's, is
// removed.
func TestAForeignTaggedPortIsReleasedForATest(t *testing.T) {
	m := newModel(t)
	m.port("cust1").Tag = "rack 3"
	journal := ownership.Journal{Boot: m.s.Boot}
	step := func(in *intent.Intent) *Plan {
		p := Diff(in, m.s, journal, nil)
		m.carryOut(p.Ops)
		journal.Claims = slices.Concat(p.StandingClaims, p.CreationClaims)
		left := Diff(in, m.s, journal, nil)
		if len(left.Ops) != 0 || len(left.Blocked) != 0 {
			t.Fatalf("left to do: %v, blocked: %v", lines(left.Ops), left.Blocked)
		}
		return left
	}
	inService := want(end(1, wholePort("cust1"), withProfile))
	step(inService)
	apart := want(end(1, wholePort("cust1"), withProfile, tested))
	mustBeApart(t, apart.Present[0], m.s, step(apart))
	journal = ownership.Journal{Boot: m.s.Boot} // lost meanwhile
	step(apart)
	step(inService)
	if to := m.s.Connects[m.port("cust1").Index]; to != m.s.Tunnels[0].Index || m.port("cust1").Tag != "rack 3" {
		t.Errorf("connected with %d, tag %q", to, m.port("cust1").Tag)
	}
}
