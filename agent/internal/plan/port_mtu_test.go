package plan

import (
	"testing"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
)

// The L3 MTU of a port in these tests, and the link MTU of a GRE tunnel (8998 bytes).
func TestWithVppcfgBothSidesOfACrossConnectHaveTheMTUOfThePort(t *testing.T) {
	for name, c := range map[string]struct {
		portMTU    uint32
		ends       []intent.End
		sub, other uint32 // of the sub-interface, and of the interface it is connected to
	}{
		"a tunnel has that of its port":        {1500, []intent.End{end(1)}, 1500, 1500},
		"a large one too":                      {9216, []intent.End{end(1)}, 9216, 9216},
		"a port without one":                   {0, []intent.End{end(1)}, 0, 9000},
		"GRE has that of its link":             {9000, []intent.End{end(1, gre)}, 8998, 8998},
		"GRE on a smaller port is not for it":  {1500, []intent.End{end(1, gre)}, 0, 9000},
		"GRE with larger frames is not for it": {9216, []intent.End{end(1, gre, func(e *intent.End) { e.Frame = 9018 })}, 0, 9018},
		"GENEVE never is":                      {1500, []intent.End{end(1, func(e *intent.End) { e.Tunnel.Encapsulation = intent.GENEVE })}, 0, 9000},
		"within a router the smaller counts":   {1500, []intent.End{crossConnected("cust0", "a"), crossConnected("cust1", "z")}, 1500, 1500},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t)
			m.port("cust0").L3MTU = c.portMTU
			in := want(c.ends...)
			in.PortMTUs = true
			for range 2 { // the link MTU of a tunnel is known once the tunnel exists
				m.carryOut(m.diff(in).Ops)
			}
			if left := m.diff(in).Ops; len(left) != 0 {
				t.Errorf("again and again: %v", lines(left))
			}
			var sub *observe.Interface
			for _, i := range m.s.Subs(m.port("cust0").Index) {
				sub = i
			}
			if other := m.s.ByIndex(m.s.Connects[sub.Index]); sub.L3MTU != c.sub || other.L3MTU != c.other {
				t.Errorf("%s has %d, %s %d", sub.Name, sub.L3MTU, other.Name, other.L3MTU)
			}
		})
	}
}

func crossConnected(port, name string) intent.End {
	return end(1, func(e *intent.End) {
		e.Key.End, e.Access.Interface, e.Tunnel = name, port, intent.Tunnel{Encapsulation: intent.L2XC}
	})
}

func TestAPortThatIsTakenWholeKeepsItsMTU(t *testing.T) {
	m := newModel(t)
	m.port("cust0").L3MTU = 1500
	in := want(end(1, wholePort("cust0")))
	in.PortMTUs = true
	m.carryOut(m.diff(in).Ops)
	port := m.port("cust0")
	if tunnel := m.s.ByIndex(m.s.Connects[port.Index]); port.L3MTU != 1500 || tunnel.L3MTU != 1500 {
		t.Errorf("the port has %d, the tunnel %d", port.L3MTU, tunnel.L3MTU)
	}
}

func TestAnAdoptedLineGetsItsMTUsWhenAdoptionIsComplete(t *testing.T) {
	m := newModel(t)
	m.carryOut(m.diff(want(end(1))).Ops)
	for _, i := range m.s.Interfaces { // foreign
		i.Tag = ""
	}
	in := want(end(1, func(e *intent.End) { e.Adopt = true }))
	in.PortMTUs = true
	for _, op := range m.diff(in).Ops {
		if op.Stage != Tag {
			t.Errorf("%s", op.Action.CLI())
		}
	}
}
