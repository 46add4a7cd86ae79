package converge

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/l2"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/vpp"
)

// recorder records the interfaces that the agent's changes concern.
type recorder struct {
	*vpp.Session
	touched map[uint32][]string // interface -> messages
}

func record(session *vpp.Session) *recorder {
	return &recorder{session, make(map[uint32][]string)}
}

func (r *recorder) Calls(ctx context.Context, requests []api.Message) ([]api.Message, error) {
	if isChange(requests) {
		for _, request := range requests {
			for _, field := range []string{"SwIfIndex", "RxSwIfIndex", "TxSwIfIndex"} {
				if value := reflect.ValueOf(request).Elem().FieldByName(field); value.IsValid() {
					index := uint32(value.Uint())
					r.touched[index] = append(r.touched[index], request.GetMessageName())
				}
			}
		}
	}
	return r.Session.Calls(ctx, requests)
}

// litter creates foreign objects:
//   - some of the VLANs and VNIs that the intents want;
//   - a description on the second port;
//   - an address or a Linux CP pair on the third port;
//   - a bridge with the fourth port;
//   - a line with a foreign tag.
func (r *router) litter(random *rand.Rand) {
	r.t.Helper()
	r.furnishForeign()
	for vlan := range uint16(3) {
		if random.IntN(3) == 0 {
			r.subByHand(r.ports[random.IntN(3)], uint32(300+vlan), 100+vlan)
		}
	}
	for vni := range uint32(3) {
		if random.IntN(3) == 0 {
			family := []int{4, 6}[random.IntN(2)]
			r.tunnelByHand(intent.Tunnel{Local: locals[family], Remote: remotes[family], VNI: 1 + vni})
		}
	}
	used := map[string]bool{r.ports[3]: true} // by that line
	if random.IntN(2) == 0 {
		used[r.ports[2]] = true
		r.must(&interfaces.SwInterfaceAddDelAddress{SwIfIndex: r.index(r.ports[2]), IsAdd: true,
			Prefix: ip_types.AddressWithPrefix{Address: ip_types.NewAddress([]byte{10, 9, 0, 1}), Len: 24}})
	}
	switch random.IntN(4) {
	case 0:
		port := r.ports[1+random.IntN(2)]
		used[port] = true
		r.sendInto(port)
	case 1:
		r.sendIntoNextInterface()
	}
	if random.IntN(2) == 0 {
		r.must(&l2.SwInterfaceSetL2Bridge{RxSwIfIndex: r.index(r.ports[3]), BdID: 7, Enable: true})
	}
	r.must(&interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: r.index(r.ports[1]), Tag: "rack 3, blue cable"})
	if random.IntN(2) == 0 && r.pair != nil {
		if err := r.pair(r.ports[2]); err != nil {
			r.t.Logf("WITHOUT LINUX CP PAIRS: %v", err)
			r.pair = nil
		}
	}
}

// isHarmless reports whether a message may concern a used port: it only creates a sub-interface.
func isHarmless(message string) bool { return message == "create_subif" }

// theirs returns the interfaces that no change may concern.
func theirs(s *observe.Snapshot, bare ...string) map[uint32]string {
	found := make(map[uint32]string)
	for _, i := range s.Interfaces {
		if !slices.Contains(bare, i.Name) {
			found[i.Index] = i.Name
		}
	}
	return found
}

func (r *router) randomEnd(random *rand.Rand, n int) intent.End {
	e := vxlanEnd(n, r.ports[random.IntN(len(r.ports))])
	e.Revision, e.AdminUp = int32(1+random.IntN(3)), random.IntN(4) > 0
	tagging := []intent.Tagging{intent.Untagged, intent.Dot1q, intent.Dot1q, intent.QinQ, intent.Dot1ad}[random.IntN(5)]
	e.Access = intent.Access{Interface: e.Access.Interface, Tagging: tagging, Exact: true}
	if tagging.Tags() > 0 {
		e.Access.Outer = uint16(100 + random.IntN(3))
	}
	if tagging.Tags() > 1 {
		e.Access.Inner = uint16(1 + random.IntN(2))
	}
	family := []int{4, 6}[random.IntN(2)]
	e.Tunnel = intent.Tunnel{Encapsulation: []intent.Encapsulation{intent.VXLAN, intent.GENEVE, intent.GRE}[random.IntN(3)],
		Local: locals[family], Remote: remotes[family]}
	if e.Tunnel.Encapsulation != intent.GRE {
		e.Tunnel.VNI = uint32(1 + random.IntN(3))
	} else if r.can(observe.CanGREKeys) {
		e.Tunnel.GREKey = uint32(random.IntN(3))
	}
	if random.IntN(3) == 0 {
		e.Bandwidth = intent.Bandwidth{CIR: 1e6, CBS: 64000}
	}
	return e
}

// randomIntent names some of six VLLs as wanted and some as removed; the others are quarantined. It omits
// ends that violate the contract.
func (r *router) randomIntent(random *rand.Rand) (present []intent.End, removed []intent.Tombstone) {
	for n := range 6 {
		switch random.IntN(5) {
		case 0:
		case 1:
			removed = append(removed, tombstone(r.randomEnd(random, n)))
		default:
			with := append(present[:len(present):len(present)], r.randomEnd(random, n))
			if _, err := intent.Decode((&intent.Intent{Router: "rhino", Generation: 1, Present: with}).Document(), "rhino"); err == nil {
				present = with
			}
		}
	}
	return present, removed
}

// TestNoMessageConcernsForeignObjects sends random intents to a VPP with foreign configuration. There are
// so few VLANs, VNIs and ports that almost everything conflicts.
func TestNoMessageConcernsForeignObjects(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		for seed := range uint64(25) {
			random := rand.New(rand.NewPCG(seed, 2))
			r.folder = t.TempDir()
			r.open()
			r.litter(random)
			bare := r.ports[:2]
			s := r.snapshot()
			if third := s.ByName(r.ports[2]); len(third.Addresses) == 0 && s.LCP[third.Index] == "" {
				bare = r.ports[:3]
			}
			foreign := theirs(r.snapshot(), bare...)
			before := r.stateOf(r.snapshot(), foreign)
			conflicts := 0
			for round := range 6 {
				at := fmt.Sprintf("seed %d, round %d", seed, round)
				session := record(r.session)
				r.Attach(session)
				present, removed := r.randomIntent(random)
				outcome := r.put(present, removed...)
				for index, name := range foreign {
					messages := slices.DeleteFunc(session.touched[index], isHarmless)
					if len(messages) != 0 {
						t.Errorf("%s: %s was touched by %v", at, name, messages)
					}
				}
				description := uint32(r.index(r.ports[1]))
				if slices.Contains(session.touched[description], "sw_interface_tag_add_del") {
					t.Errorf("%s: the description of %s was touched", at, r.ports[1])
				}
				if after := r.stateOf(r.snapshot(), foreign); !maps.Equal(after, before) {
					t.Errorf("%s: got  %v\nwant %v", at, after, before)
				}
				conflicts += r.mustBeAnswered(t, at, outcome)
				if t.Failed() {
					t.FailNow()
				}
			}
			if conflicts == 0 {
				t.Logf("seed %d met no conflict", seed)
			}
			r.startOver(t)
		}
	})
}

// mustBeAnswered checks that every end is done, is in conflict with a named object or waits for one, and
// that nothing is left to do.
func (r *router) mustBeAnswered(t *testing.T, at string, o *Outcome) (conflicts int) {
	t.Helper()
	for _, e := range o.Ends {
		switch {
		case e.Reason == nil:
		case e.Status == "conflict" && e.Reason.Object != "":
			conflicts++
		case e.Reason.Code == "port_down" && e.Reason.Object != "": // a whole-port VLL that was to be down left it down
		default:
			t.Errorf("%s: %s is %s: %+v", at, e.Key, e.Status, e.Reason)
		}
	}
	if off := r.fieldsOff(); len(off) != 0 {
		t.Errorf("%s: left to do: %v", at, off)
	}
	return conflicts
}

// stateOf returns everything that VPP shows about these interfaces, and whether they forward. A refused
// sub-interface with the same VLAN stops forwarding without a sign in any dump.
func (r *router) stateOf(s *observe.Snapshot, of map[uint32]string) map[string]string {
	var ports []*observe.Interface
	for index := range of {
		if i := s.ByIndex(index); i != nil && !i.IsSub() {
			ports = append(ports, i)
		}
	}
	s, err := observe.ReadPortUses(r.t.Context(), r.session, s, ports)
	if err != nil {
		r.t.Fatal(err)
	}
	state := make(map[string]string)
	for index, name := range of {
		if i := s.ByIndex(index); i != nil {
			state[name] = fmt.Sprintf("%+v to %d, bridge %d, Linux %q, policed %v, use %+v", *i, s.Connects[index], s.Bridged[index], s.LCP[index],
				s.Policed[index], s.Uses[index])
			if r.forwards != nil && name != r.foreignSender() { // the frames of that sub-interface go to the interface that has the index now
				state[name] += fmt.Sprint(r.forwards(name))
			}
		}
	}
	return state
}

// startOver gives the next round an empty VPP.
func (r *router) startOver(t *testing.T) {
	t.Helper()
	restarted(r, r.session, nil)
	r.connect()
	r.furnish()
}
