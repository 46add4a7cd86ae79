package plan

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/tunnel"
)

// model simulates a VPP on a snapshot: it carries out operations as VPP would, and refuses what VPP
// refuses.
type model struct {
	t       testing.TB
	s       *observe.Snapshot
	next    uint32
	working map[uint32]string // interface -> the agent's policer that works on it
}

var (
	local4, remote4 = netip.MustParseAddr("10.255.0.1"), netip.MustParseAddr("10.255.0.2")
	local6, remote6 = netip.MustParseAddr("fd00:255::1"), netip.MustParseAddr("fd00:255::2")
)

// newModel has loop0 with the local addresses and the ports cust0..cust3, all up.
func newModel(t testing.TB) *model {
	m := &model{t: t, working: map[uint32]string{}, s: &observe.Snapshot{
		Boot: ownership.Boot{PID: 1, MS: 1000}, Connects: map[uint32]uint32{}, Bridged: map[uint32]uint32{}, LCP: map[uint32]string{},
		Policers: map[string]*observe.Policer{}, Policed: map[uint32]bool{}, Classified: map[uint32]bool{}, Policing: observe.SubInterfacePolicing,
		Classifiers: observe.Classifiers{
			Tables: map[uint32]*observe.ClassifyTable{}, OtherTables: map[uint32]bool{}, Bound: map[uint32]uint32{},
		},
		Supported: map[observe.Capability]bool{observe.CanGREKeys: true},
	}}
	for _, kind := range tunnel.Kinds {
		m.s.Supported[observe.Capability(kind.Encapsulation)] = true
	}
	loop := m.add(observe.Interface{Name: "loop0", AdminUp: true})
	loop.Addresses = []netip.Prefix{netip.PrefixFrom(local4, 32), netip.PrefixFrom(local6, 128)}
	for n := range 4 {
		m.add(observe.Interface{Name: fmt.Sprintf("cust%d", n), AdminUp: true, LinkUp: true, L3MTU: 9000, Device: "dpdk"})
	}
	return m
}

func (m *model) add(i observe.Interface) *observe.Interface {
	i.Index = m.next
	if i.Sub == (observe.SubInterface{}) {
		i.Sup = i.Index
	}
	m.next++
	m.s.Interfaces = append(m.s.Interfaces, &i)
	m.s.Index()
	return &i
}

func (m *model) port(name string) *observe.Interface { return m.s.ByName(name) }

// sub adds a foreign sub-interface.
func (m *model) sub(port string, id uint32, a intent.Access, tag string) *observe.Interface {
	return m.add(observe.Interface{
		Name: fmt.Sprintf("%s.%d", port, id), Tag: tag, Sup: m.port(port).Index,
		Sub: observe.SubInterface{ID: id, Tags: uint8(a.Tagging.Tags()), Dot1ad: a.Tagging == intent.Dot1ad, Exact: a.Exact, Outer: a.Outer, Inner: a.Inner},
	})
}

// tunnel adds a foreign tunnel.
func (m *model) tunnel(t intent.Tunnel, tag string) *observe.Interface {
	i := m.add(observe.Interface{Name: fmt.Sprintf("%s_tunnel%d", t.Encapsulation, m.next), Tag: tag, AdminUp: t.Encapsulation != intent.GRE, L3MTU: 9000, LinkMTU: 8998})
	m.s.Tunnels = append(m.s.Tunnels, &observe.Tunnel{Tunnel: t, Index: i.Index, Default: true})
	m.s.Index()
	return i
}

func (m *model) carryOut(ops []Op) {
	m.t.Helper()
	made := make(map[Made]uint32)
	tables := make(map[intent.Key]uint32)
	find := func(r Ref) *observe.Interface {
		index := r.Index
		if index == observe.NoIndex {
			index = made[r.Made]
		}
		i := m.s.ByIndex(index)
		if i == nil {
			m.t.Fatalf("%s does not exist", r.Name)
		}
		return i
	}
	for _, op := range ops {
		if reason := NewCreateCheck(m.s).Verify(op); reason != nil {
			m.t.Fatalf("%s is withheld: %+v", op.Action.CLI(), reason)
		}
		switch a := op.Action.(type) {
		case CreateSub:
			m.mustBeFree(a)
			made[a.Sub.Made] = m.sub(a.Port.Name, a.ID, a.Access, "").Index
		case CreateTunnel:
			for _, t := range m.s.Tunnels {
				if t.Identity() == a.Tunnel.Identity() {
					m.t.Fatalf("%s: the tunnel exists", a.CLI())
				}
			}
			made[a.Interface.Made] = m.tunnel(a.Tunnel, "").Index
		case DeleteSub:
			m.remove(find(a.Sub))
		case DeleteTunnel:
			m.remove(find(a.Interface))
		case SetTag:
			find(a.Interface).Tag = a.Tag
		case SetMTU:
			find(a.Interface).L3MTU = a.MTU
		case SetRewrite:
			find(a.Interface).Rewrite = a.Pop
		case SetConnect:
			m.s.Connects[find(a.From).Index] = find(a.To).Index
		case ClearConnect:
			from := find(a.From)
			delete(m.s.Connects, from.Index)
			delete(m.s.Bridged, from.Index)
			from.Rewrite = 0
			if m.s.Policed[from.Index] && from.IsSub() || m.s.Classified[from.Index] {
				m.t.Fatalf("%s leaves L2 while policed: VPP forgets half of it", from.Name)
			}
		case AddPolicer:
			if m.s.Policers[a.Name] != nil {
				m.t.Fatalf("%s: the policer exists", a.CLI())
			}
			m.next++
			key, _ := ownership.ParsePolicerName(a.Name)
			m.s.Policers[a.Name] = &observe.Policer{End: key, Index: m.next, Config: observe.PolicerConfig(a.Bandwidth)}
		case UpdatePolicer:
			m.s.Policers[a.Name].Config = observe.PolicerConfig(a.Bandwidth)
		case DeletePolicer:
			for index, policer := range m.working {
				if policer == a.Name {
					m.t.Fatalf("%s: it works on %d", a.CLI(), index)
				}
			}
			for _, t := range m.s.Tables {
				if index := m.s.Policers[a.Name].Index; slices.Contains(t.Hits[:], index) {
					m.t.Fatalf("%s: table %d leads to it", a.CLI(), t.Index)
				}
			}
			delete(m.s.Policers, a.Name)
		case AddTable:
			m.next++
			m.s.Tables[m.next] = &observe.ClassifyTable{Index: m.next, Mark: a.Mark, Hits: [2]uint32{observe.NoIndex, observe.NoIndex}}
			tables[op.End] = m.next
		case SetSession, SetClassifier, DeleteTable:
			m.classify(op, find, tables)
		case SetPolicing:
			i := find(a.Interface)
			switch {
			case m.s.Policing == observe.ClassifierPolicing && i.IsSub():
				m.t.Fatalf("%s: this VPP polices no sub-interface so", a.CLI())
			case a.On && m.s.Policed[i.Index]:
				m.t.Fatalf("%s is policed twice", i.Name)
			case a.On && m.s.Policers[a.Policer] == nil, !a.On && m.working[i.Index] != a.Policer:
				m.t.Fatalf("%s: that policer does not exist or does not work there", a.CLI())
			case a.On:
				m.s.Policed[i.Index], m.working[i.Index] = true, a.Policer
			default:
				delete(m.s.Policed, i.Index)
				delete(m.working, i.Index)
			}
		case SetAdmin:
			i := find(a.Interface)
			if a.Up && i.IsSub() && !m.s.ByIndex(i.Sup).AdminUp {
				m.t.Fatalf("%s: the port is down", a.CLI())
			}
			i.AdminUp = a.Up
		}
	}
}

// classify carries out operations on classify tables; tables are those that this plan created.
func (m *model) classify(op Op, find func(Ref) *observe.Interface, tables map[intent.Key]uint32) {
	m.t.Helper()
	table := tableOf(op.Action)
	if table.Index == observe.NoIndex {
		table.Index = tables[op.End]
	}
	t := m.s.Tables[table.Index]
	if t == nil || t.Mark != table.Mark {
		m.t.Fatalf("%s: the table is %+v", op.Action.CLI(), t)
	}
	switch a := op.Action.(type) {
	case SetSession:
		group := 0
		if a.Many {
			group = 1
		}
		if p := m.s.Policers[a.Policer]; p == nil || a.Index != observe.NoIndex && a.Index != p.Index {
			m.t.Fatalf("%s: the policer is %+v", a.CLI(), p)
		} else {
			t.Hits[group] = p.Index
		}
	case SetClassifier:
		i := find(a.Interface)
		bound, isBound := m.s.Bound[i.Index]
		switch {
		case a.On && isBound:
			m.t.Fatalf("%s is bound to %d already", i.Name, bound)
		case a.On && t.Hits[0] != t.Hits[1]:
			m.t.Fatalf("%s: frames pass by the policer", a.CLI())
		case a.On:
			m.s.Bound[i.Index], m.s.Classified[i.Index] = t.Index, true
		case bound != t.Index || !isBound:
			m.t.Fatalf("%s: %s is bound to %d", a.CLI(), i.Name, bound)
		default:
			delete(m.s.Bound, i.Index)
			delete(m.s.Classified, i.Index)
		}
	case DeleteTable:
		for index, bound := range m.s.Bound {
			if bound == t.Index {
				m.t.Fatalf("%s: it is bound to %d", a.CLI(), index)
			}
		}
		delete(m.s.Tables, t.Index)
	}
}

// mustBeFree fails if VPP would refuse the sub-interface, which would also stop the traffic of the existing
// one. It also fails if the new sub-interface would take frames from an existing one.
func (m *model) mustBeFree(a CreateSub) {
	m.t.Helper()
	port := m.port(a.Port.Name)
	for _, sub := range m.s.Subs(port.Index) {
		if sub.Sub.ID == a.ID || sub.Sub.Frames().Overlap(a.Access.Frames()) {
			m.t.Fatalf("OUTAGE: %s hits %s", a.CLI(), sub.Name)
		}
	}
}

func (m *model) remove(i *observe.Interface) {
	m.t.Helper()
	if _, connected := m.s.Connects[i.Index]; connected {
		m.t.Fatalf("%s is deleted while cross-connected", i.Name)
	}
	if m.s.Policed[i.Index] {
		m.t.Fatalf("%s is deleted while policed", i.Name)
	}
	for from, to := range m.s.Connects {
		if sender := m.s.ByIndex(from); to == i.Index && !m.isForeign(sender) {
			m.t.Fatalf("%s is deleted while %s sends into it", i.Name, sender.Name)
		}
	}
	m.s.Interfaces = slices.DeleteFunc(m.s.Interfaces, func(x *observe.Interface) bool { return x == i })
	m.s.Tunnels = slices.DeleteFunc(m.s.Tunnels, func(x *observe.Tunnel) bool { return x.Index == i.Index })
	m.s.Index()
}

// isForeign returns true for interfaces that no test assigns to a line.
func (m *model) isForeign(i *observe.Interface) bool {
	return i.Tag == "somebody's" || i.Name == "cust2" || i.Name == "cust3"
}

// picture returns the whole state as text, for comparisons.
func (m *model) picture(keep func(*observe.Interface) bool) map[string]string {
	picture := make(map[string]string)
	for _, i := range m.s.Interfaces {
		if keep(i) {
			picture[i.Name] = fmt.Sprintf("%+v -> %v, policed %v", *i, m.s.Connects[i.Index], m.s.Policed[i.Index])
		}
	}
	return picture
}

func everything(*observe.Interface) bool { return true }

func (m *model) diff(in *intent.Intent) *Plan {
	return Diff(in, m.s, ownership.Journal{Boot: m.s.Boot}, nil)
}

func id(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

// end returns VLL n's a end: VLAN 100+n of cust0 over VXLAN.
func end(n int, changes ...func(*intent.End)) intent.End {
	e := intent.End{
		Key: intent.Key{VLL: id(n), End: "a"}, Revision: 1, AdminUp: true, Frame: 1514,
		Access: intent.Access{Interface: "cust0", Tagging: intent.Dot1q, Outer: uint16(100 + n), Exact: true},
		Tunnel: intent.Tunnel{Encapsulation: intent.VXLAN, Local: local4, Remote: remote4, VNI: uint32(1000 + n)},
	}
	for _, change := range changes {
		change(&e)
	}
	return e
}

func want(ends ...intent.End) *intent.Intent {
	return &intent.Intent{Router: "rhino", Generation: 1, Present: ends}
}

func (m *model) without(ends ...intent.End) *intent.Intent {
	in := want()
	for _, e := range ends {
		in.Removed = append(in.Removed, intent.Tombstone{Key: e.Key, Revision: e.Revision})
	}
	return in
}

func tagOf(e intent.End) string { return ownership.Tag{Key: e.Key, Revision: e.Revision}.String() }

func wholePort(name string) func(*intent.End) {
	return func(e *intent.End) { e.Access = intent.Access{Interface: name, Tagging: intent.Untagged, Exact: true} }
}

func lines(ops []Op) []string {
	var texts []string
	for _, op := range ops {
		texts = append(texts, op.Stage.String()+": "+op.Action.CLI())
	}
	return texts
}

func mustEqual[K comparable, V comparable](t *testing.T, got, want map[K]V) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
