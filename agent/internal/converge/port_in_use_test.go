package converge

import (
	"maps"
	"testing"

	"go.fd.io/govpp/binapi/bond"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/policer"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
)

// usesByHand lists foreign uses of a port that no complete dump shows. make creates the use, and end ends
// it.
var usesByHand = map[string]struct {
	make, end func(r *router, port string)
	object    string // object of the conflict; "" means the port
}{
	"unnumbered": {
		make: func(r *router, port string) { r.unnumber(port, true) },
		end:  func(r *router, port string) { r.unnumber(port, false) },
	},
	"IPv6 with a link-local address alone": {
		make: func(r *router, port string) { r.enableIP6(port, true) },
		end:  func(r *router, port string) { r.enableIP6(port, false) },
	},
	"another IPv4 table": {
		make: func(r *router, port string) { r.setTable(port, false, 10) },
		end:  func(r *router, port string) { r.setTable(port, false, 0) },
	},
	"another IPv6 table": {
		make: func(r *router, port string) { r.setTable(port, true, 11) },
		end:  func(r *router, port string) { r.setTable(port, true, 0) },
	},
	"a bond": {make: (*router).bond, object: "BondEthernet7"},
}

func (r *router) unnumber(port string, on bool) {
	r.must(&interfaces.SwInterfaceSetUnnumbered{SwIfIndex: r.index("loop0"), UnnumberedSwIfIndex: r.index(port), IsAdd: on})
}

func (r *router) enableIP6(port string, on bool) {
	r.must(&ip.SwInterfaceIP6EnableDisable{SwIfIndex: r.index(port), Enable: on})
}

func (r *router) setTable(port string, ip6 bool, table uint32) {
	if table != 0 {
		r.must(&ip.IPTableAddDel{IsAdd: true, Table: ip.IPTable{TableID: table, IsIP6: ip6}})
	}
	r.must(&interfaces.SwInterfaceSetTable{SwIfIndex: r.index(port), IsIPv6: ip6, VrfID: table})
}

func (r *router) bond(port string) {
	if r.snapshot().ByName("BondEthernet7") == nil {
		r.must(&bond.BondCreate2{Mode: bond.BOND_API_MODE_XOR, ID: 7})
	}
	r.must(&bond.BondAddMember{SwIfIndex: r.index(port), BondSwIfIndex: r.index("BondEthernet7")})
}

// policeByHand applies a foreign policer to the input of a port.
func (r *router) policeByHand(port string) {
	const theirs = "theirs"
	r.must(&policer.PolicerAdd{Name: theirs, Infos: observe.PolicerConfig(intent.Bandwidth{CIR: 1e6, CBS: 64_000})})
	r.must(&policer.PolicerInput{Name: theirs, SwIfIndex: r.index(port), Apply: true})
}

// TestPortWithAForeignUseIsNotTakenAsAWhole covers full and quick observations. When the use ends, the line
// is built.
func TestPortWithAForeignUseIsNotTakenAsAWhole(t *testing.T) {
	for name, use := range usesByHand {
		t.Run(name, func(t *testing.T) {
			onEveryVPP(t, func(t *testing.T, r *router) {
				port, other := r.ports[1], vxlanEnd(2, r.ports[0])
				whole := vxlanEnd(1, port)
				whole.Access = accessOf(intent.Untagged, port)
				r.put([]intent.End{other}).mustAllBe(t, "verified")
				use.make(r, port)
				before := comparable(r.snapshot())
				named := use.object
				if named == "" {
					named = port
				}
				named = describeInterface(r.snapshot().ByName(named))
				mustConflict := func(when string, o *Outcome) {
					t.Helper()
					if e := o.of(t, whole.Key); e.Status != "conflict" || e.Reason.Code != "port_in_use" || e.Reason.Object != named {
						t.Errorf("%s: %+v %+v", when, e, e.Reason)
					}
				}
				mustConflict("after a quick observation", r.put([]intent.End{other, whole}))
				mustConflict("after a full observation", r.Converge(t.Context()))
				if r.repair(t.Context()) {
					t.Error("something was repaired")
				}
				if p, err := r.ObservedState(t.Context()); err != nil || p.Plan.Blocked[whole.Key] == nil || len(p.Plan.Ops) != 0 {
					t.Errorf("%v; the picture shows %+v", err, p.Plan)
				}
				if p, _, err := r.Plan(t.Context(), &intent.Intent{Router: "rhino", Generation: 1000, Present: []intent.End{whole}}); err != nil || p.Blocked[whole.Key] == nil {
					t.Errorf("%v; the plan shows %+v", err, p)
				}
				if after := comparable(r.snapshot()); !maps.Equal(after, before) {
					t.Errorf("got  %v\nwant %v", after, before)
				}
				if use.end != nil {
					use.end(r, port)
					r.repair(t.Context())
					r.put([]intent.End{other, whole}).mustAllBe(t, "verified")
				}
			})
		})
	}
}

// TestForeignPolicerAfterTheLastFullObservationIsDetected: otherwise the port would be reported as policed
// by the agent, and a removal would remove the foreign policer.
func TestForeignPolicerAfterTheLastFullObservationIsDetected(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		if r.snapshot().Policing == observe.NoPolicing {
			t.Skip("this VPP has no policers")
		}
		other, whole := vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[1])
		whole.Access, whole.Bandwidth = accessOf(intent.Untagged, r.ports[1]), profile
		r.put([]intent.End{other}).mustAllBe(t, "verified")
		r.policeByHand(r.ports[1])
		port := r.index(r.ports[1])
		outcome := r.put([]intent.End{other, whole})
		if e := outcome.of(t, whole.Key); e.Status != "conflict" || e.Reason.Code != "port_in_use" || e.Policed {
			t.Errorf("got %+v %+v", e, e.Reason)
		}
		r.put(nil, tombstone(other), tombstone(whole)).mustAllBe(t, "removed")
		if s := r.snapshot(); !s.Policed[uint32(port)] || len(s.Policers) != 0 {
			t.Errorf("their policer works: %v; the agent's: %v", s.Policed[uint32(port)], s.Policers)
		}
	})
}
