package plan

import (
	"slices"
	"strings"
	"testing"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
)

func probe(e *intent.End) { e.Access, e.Testing = intent.Access{}, true }

func TestAProbeIsOnlyATunnel(t *testing.T) {
	m := newModel(t)
	before := m.picture(everything)
	e := end(1, probe)
	wanted := []string{
		"create: create vxlan tunnel src 10.255.0.1 dst 10.255.0.2 vni 1001",
		"tag: set interface tag vxlan_tunnel<new> " + tagOf(e),
	}
	if got := lines(m.diff(want(e)).Ops); !slices.Equal(got, wanted) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(wanted, "\n"))
	}
	m.settle(t, want(e))
	m.settle(t, m.without(e))
	mustEqual(t, m.picture(everything), before)
}

func TestAProbeExistsNextToLinesInEveryEncapsulation(t *testing.T) {
	for name, change := range map[string]func(*intent.End){"VXLAN": func(*intent.End) {}, "GRE": gre} {
		for _, policing := range []observe.Policing{observe.NoPolicing, observe.SubInterfacePolicing, observe.ClassifierPolicing} {
			t.Run(name+" with policing "+string(policing), func(t *testing.T) {
				m := newModel(t)
				m.s.Policing = policing
				line := end(1, withProfile)
				m.settle(t, want(line))
				before := m.picture(everything)
				both := want(line, end(2, change, probe))
				left := m.settle(t, both)
				if tunnel := m.s.Tunnels[1]; len(m.s.Tunnels) != 2 || !m.s.ByIndex(tunnel.Index).AdminUp {
					t.Errorf("tunnels: %+v", m.s.Tunnels)
				}
				if left.Policed[end(2).Key] || m.s.Policers[ownership.PolicerName(end(2).Key)] != nil {
					t.Error("it is reported as policed")
				}
				m.settle(t, &intent.Intent{Present: want(line).Present, Removed: []intent.Tombstone{{Key: end(2).Key, Revision: 1}}})
				mustEqual(t, m.picture(everything), before)
			})
		}
	}
}

func TestACrossConnectOfAProbeIsRemoved(t *testing.T) {
	m := newModel(t)
	in := want(end(1, probe))
	m.settle(t, in)
	m.s.Connects[m.s.Tunnels[0].Index] = m.port("cust3").Index
	if p := m.diff(in); len(p.Ops) != 1 || p.Ops[0].Drift.Field != "xconnect" || p.Ops[0].Drift.Desired != "" {
		t.Errorf("drift: %v", lines(p.Ops))
	}
	m.settle(t, in)
}

func TestAForeignTunnelWithTheKeyOfAProbeStays(t *testing.T) {
	m := newModel(t)
	e := end(1, probe)
	m.tunnel(e.Tunnel, "somebody's")
	before := m.picture(everything)
	p := m.diff(want(e))
	if reason := p.Blocked[e.Key]; reason == nil || reason.Code != "foreign_tunnel" || len(p.Ops) != 0 {
		t.Errorf("blocked %+v, operations %v", reason, lines(p.Ops))
	}
	mustEqual(t, m.picture(everything), before)
}
