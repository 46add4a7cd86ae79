package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
)

// TestAnySequenceOfIntentsNextToAnyForeignConfiguration applies random intents to a model VPP with random
// foreign configuration. There are few VLANs, VNIs and ports, so that almost everything collides. After
// each intent, everything possible is carried out, a second plan is empty, and the foreign configuration is
// unchanged. The model itself fails the test for a duplicate VLAN, a deletion of a connected interface, or
// a sub-interface raised under a port that is down.
func TestAnySequenceOfIntentsNextToAnyForeignConfiguration(t *testing.T) {
	for seed := range uint64(400) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			m := newModel(t)
			foreign := litter(m, random)
			journal := ownership.Journal{Boot: m.s.Boot}
			var stored *intent.Intent
			var clean *Plan // the plan of the stored intent, if it left out no end
			for range 8 {
				in := randomIntent(random)
				if clean != nil && random.IntN(4) > 0 {
					in = exceptFor(stored, in, id(random.IntN(6)))
				}
				before := m.picture(foreign)
				p := Diff(in, m.s, journal, nil)
				if clean != nil {
					if few := clean.ReplanFor(differing(stored, in))(in, m.s, journal, nil); !reflect.DeepEqual(few, p) {
						t.Fatalf("planned for what differs: %+v\nwant %+v", few, p)
					}
				}
				m.carryOut(p.Ops)
				journal.Claims = append(p.StandingClaims, p.CreationClaims...)
				if after := m.picture(foreign); !maps.Equal(after, before) {
					t.Fatalf("what others made changed\n got %v\nwant %v\n ops %v", after, before, lines(p.Ops))
				}
				left := Diff(in, m.s, journal, nil)
				if again := p.Replan(in, m.s, journal, nil); !reflect.DeepEqual(again, left) {
					t.Fatalf("planned again: %+v\nwant %+v", again, left)
				}
				if len(left.Ops) != 0 {
					t.Fatalf("left to do: %v\nafter %v", lines(left.Ops), lines(p.Ops))
				}
				mustBeWhole(t, in, m.s, left)
				journal.Claims = left.StandingClaims
				if stored, clean = in, left; len(left.Blocked) > 0 {
					clean = nil
				}
			}
		})
	}
}

// entriesOf returns the entries of a document for a VLL.
func entriesOf(in *intent.Intent, vll string) (ends []intent.End, removed []intent.Tombstone) {
	for _, e := range in.Present {
		if e.VLL == vll {
			ends = append(ends, e)
		}
	}
	for _, r := range in.Removed {
		if r.VLL == vll {
			removed = append(removed, r)
		}
	}
	return ends, removed
}

// differing returns the VLLs whose entries differ between the documents.
func differing(a, b *intent.Intent) map[string]bool {
	differ := make(map[string]bool)
	for n := range 6 {
		endsA, removedA := entriesOf(a, id(n))
		endsB, removedB := entriesOf(b, id(n))
		if !slices.Equal(endsA, endsB) || !slices.Equal(removedA, removedB) {
			differ[id(n)] = true
		}
	}
	return differ
}

// exceptFor returns document a with the entries of one VLL replaced by those of b. If that breaks a rule, it
// returns b.
func exceptFor(a, b *intent.Intent, vll string) *intent.Intent {
	mixed := want()
	for n := range 6 {
		from := a
		if id(n) == vll {
			from = b
		}
		ends, removed := entriesOf(from, id(n))
		mixed.Present, mixed.Removed = append(mixed.Present, ends...), append(mixed.Removed, removed...)
	}
	valid, err := intent.Decode(mixed.Document(), "rhino")
	if err != nil {
		return b
	}
	return valid
}

// mustBeWhole checks that an end that is not blocked has both sides, and that a removed end has none.
func mustBeWhole(t *testing.T, in *intent.Intent, s *observe.Snapshot, left *Plan) {
	t.Helper()
	interfaces := make(map[intent.Key]int)
	for _, h := range left.Owned {
		interfaces[h.End]++
	}
	for _, h := range left.Owned {
		for from, to := range s.Connects {
			theirs := s.ByIndex(from).Tag == "somebody's"
			if to == h.Interface.Index && theirs && left.Blocked[h.End] == nil && !slices.Contains(left.Quarantined, h) {
				t.Fatalf("%s has %s, which has a foreign sender", h.End, h.Interface.Name)
			}
		}
	}
	for _, e := range in.Present {
		sides := 2
		if e.Tunnel.Encapsulation == intent.L2XC {
			sides = 1
		}
		if e.Testing && e.Access.Tagging == intent.Untagged && s.ByName(e.Access.Interface).Tag == "rack 3" {
			sides = 1 // only its cross-connect would show that the port belongs to the line
		}
		if e.Testing && left.Blocked[e.Key] == nil {
			mustBeApart(t, e, s, left)
		}
		if left.Blocked[e.Key] == nil && interfaces[e.Key] != sides {
			t.Fatalf("%s has %d interfaces, want %d", e.Key, interfaces[e.Key], sides)
		}
		can := s.Policing.Reach() == observe.SubInterfacePolicing || s.Policing == observe.PortPolicing && e.Access.Tagging == intent.Untagged && s.NodePolices(s.ByName(e.Access.Interface))
		if want := left.Blocked[e.Key] == nil && can && e.Bandwidth.CIR > 0 && !e.Testing; left.Policed[e.Key] != want {
			t.Fatalf("%s is policed: %v, want %v", e.Key, left.Policed[e.Key], want)
		}
	}
	for _, r := range in.Removed {
		if left.Blocked[r.Key] == nil && interfaces[r.Key] != 0 {
			t.Fatalf("%s is removed and has %d interfaces", r.Key, interfaces[r.Key])
		}
		if left.Blocked[r.Key] == nil && s.Policers[ownership.PolicerName(r.Key)] != nil {
			t.Fatalf("%s is removed and has a policer", r.Key)
		}
		for _, table := range s.Tables {
			if left.Blocked[r.Key] == nil && table.Mark == ownership.TableMark(r.Key) {
				t.Fatalf("%s is removed and has a classify table", r.Key)
			}
		}
	}
}

// mustBeApart checks that no cross-connect leads into or out of a tested end, and that nothing polices it.
// An end of the same VLL that the document does not name stays unchanged, and may send into the access.
func mustBeApart(t *testing.T, e intent.End, s *observe.Snapshot, left *Plan) {
	t.Helper()
	interfaces := []*observe.Interface{s.ByName(e.Access.Interface)}
	if e.Access.Tagging != intent.Untagged {
		interfaces = nil
	}
	for _, h := range left.Owned {
		if h.End == e.Key {
			interfaces = append(interfaces, h.Interface)
		}
	}
	for _, i := range interfaces {
		if to, connected := s.Connects[i.Index]; connected || s.Policed[i.Index] {
			t.Fatalf("%s is tested, and %s leads to %d (%v) or is policed", e.Key, i.Name, to, connected)
		}
		for from, to := range s.Connects {
			left := slices.ContainsFunc(left.Quarantined, func(h *EndInterface) bool { return h.Interface.Index == from && h.End == e.Other() })
			if to == i.Index && !left {
				t.Fatalf("%s is tested, and %s leads into %s", e.Key, s.ByIndex(from).Name, i.Name)
			}
		}
	}
}

// litter adds foreign configuration. The returned function distinguishes it from the agent's objects and
// from unused ports.
func litter(m *model, random *rand.Rand) func(*observe.Interface) bool {
	m.port("cust2").Addresses = []netip.Prefix{netip.MustParsePrefix("10.9.0.1/24")}
	m.s.Bridged[m.port("cust3").Index] = 1
	m.s.Policing = []observe.Policing{
		observe.NoPolicing, observe.PortPolicing, observe.SubInterfacePolicing, observe.ClassifierPolicing,
	}[random.IntN(4)]
	for n := range 2 { // frames of the last two bypass the policer node
		m.port(fmt.Sprint("cust", n)).Device = []string{"dpdk", "memif", observe.BondDevice, "iavf"}[random.IntN(4)]
	}
	m.s.Policed[m.port("cust2").Index] = true
	m.s.Policed[m.port("cust1").Index] = random.IntN(4) == 0
	if random.IntN(2) == 0 {
		m.port("cust1").Tag = "rack 3"
	}
	for range random.IntN(4) {
		a := randomAccess(random)
		port := m.port(a.Interface)
		if a.Tagging != intent.Untagged && !m.has(vlanMatchFor(port.Index, a)) {
			m.sub(a.Interface, uint32(200+len(m.s.Interfaces)), a, "somebody's")
		}
	}
	for range random.IntN(3) {
		if t := randomTunnel(random); t.Encapsulation != intent.L2XC && !m.hasTunnel(t) {
			m.tunnel(t, "")
		}
	}
	if random.IntN(4) == 0 {
		wide := m.sub("cust0", 700, intent.Access{Tagging: intent.QinQ, Outer: 100}, "somebody's")
		wide.Sub.Selection = []observe.Selection{observe.AnyInner, observe.DefaultSub, observe.UntaggedSub}[random.IntN(3)]
	}
	if random.IntN(2) == 0 { // into a port, or into the next created interface
		half := m.sub("cust3", 999, intent.Access{Tagging: intent.Dot1q, Outer: 999, Exact: true}, "somebody's")
		m.s.Connects[half.Index] = []uint32{m.port("cust0").Index, m.port("cust1").Index, m.next + random.Uint32N(4)}[random.IntN(3)]
	}
	foreign := make(map[uint32]bool)
	for _, i := range m.s.Interfaces {
		foreign[i.Index] = i.Name != "cust0" && i.Name != "cust1"
	}
	return func(i *observe.Interface) bool { return foreign[i.Index] }
}

func (m *model) has(s vlanMatch) bool {
	for _, sub := range m.s.Subs(s.port) {
		if s == vlanMatchOf(sub) {
			return true
		}
	}
	return false
}

func (m *model) hasTunnel(t intent.Tunnel) bool {
	for _, existing := range m.s.Tunnels {
		if existing.Identity() == t.Identity() {
			return true
		}
	}
	return false
}

func randomAccess(random *rand.Rand) intent.Access {
	a := intent.Access{
		Interface: fmt.Sprintf("cust%d", random.IntN(4)), Exact: true,
		Tagging: []intent.Tagging{intent.Untagged, intent.Dot1q, intent.Dot1q, intent.QinQ, intent.Dot1ad}[random.IntN(5)],
	}
	if a.Tagging.Tags() >= 1 {
		a.Outer, a.Exact = uint16(100+random.IntN(3)), random.IntN(4) > 0
	}
	if a.Tagging.Tags() == 2 {
		a.Inner = uint16(1 + random.IntN(2))
	}
	return a
}

func randomTunnel(random *rand.Rand) intent.Tunnel {
	t := intent.Tunnel{
		Encapsulation: []intent.Encapsulation{intent.L2XC, intent.VXLAN, intent.GENEVE, intent.GRE}[random.IntN(4)],
		Local:         local4, Remote: remote4,
	}
	if random.IntN(2) == 0 {
		t.Local, t.Remote = local6, remote6
	}
	switch t.Encapsulation {
	case intent.L2XC:
		return intent.Tunnel{Encapsulation: intent.L2XC}
	case intent.VXLAN, intent.GENEVE:
		t.VNI = uint32(1 + random.IntN(3))
	case intent.GRE:
		t.GREKey = uint32(random.IntN(3))
	}
	return t
}

// randomIntent returns a valid random intent; it omits ends that would break a rule.
func randomIntent(random *rand.Rand) *intent.Intent {
	in := want()
	for n := range 6 {
		key := intent.Key{VLL: id(n), End: "a"}
		switch random.IntN(6) {
		case 0: // not named: quarantined
		case 1:
			in.Removed = append(in.Removed, intent.Tombstone{Key: key, Revision: 1}, intent.Tombstone{Key: key.Other(), Revision: 1})
		default:
			e := intent.End{
				Key: key, Revision: int32(1 + random.IntN(3)), AdminUp: random.IntN(4) > 0, Frame: 1514 + 8000*random.IntN(2),
				Access: randomAccess(random), Tunnel: randomTunnel(random),
			}
			e.Testing = e.Tunnel.Encapsulation != intent.L2XC && random.IntN(3) == 0
			if random.IntN(2) == 0 {
				e.Bandwidth = intent.Bandwidth{CIR: int64(1+random.IntN(2)) * 1e6, CBS: 64000}
			}
			ends := []intent.End{e}
			if e.Tunnel.Encapsulation == intent.L2XC {
				other := e
				other.End, other.Access = "z", randomAccess(random)
				ends = append(ends, other)
			}
			with := *in
			with.Present = append(in.Present[:len(in.Present):len(in.Present)], ends...)
			if valid, err := intent.Decode(with.Document(), "rhino"); err == nil {
				in = valid
			}
		}
	}
	return in
}
