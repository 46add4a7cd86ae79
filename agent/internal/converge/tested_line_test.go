package converge

import (
	"testing"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"

	"longline.dev/agent/internal/intent"
)

// testedEnds returns ends of all kinds, all of them under test or none.
func (r *router) testedEnds(tested bool) []intent.End {
	vlan, port, two := vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[1]), vxlanEnd(3, r.ports[0])
	vlan.Bandwidth = profile
	port.Access = intent.Access{Interface: r.ports[1], Tagging: intent.Untagged, Exact: true}
	port.Tunnel.Encapsulation, port.Tunnel.VNI, port.Bandwidth = intent.GRE, 0, profile
	two.Access.Tagging, two.Access.Inner, two.Tunnel.Encapsulation = intent.QinQ, 7, intent.GENEVE
	ends := []intent.End{vlan, port, two}
	for i := range ends {
		ends[i].Testing = tested
	}
	return ends
}

// mustBeApart checks that no interface of the ends is cross-connected or policed, and that all are up.
func (r *router) mustBeApart(t *testing.T, ends []intent.End) {
	t.Helper()
	s := r.snapshot()
	if len(s.Connects) != 0 {
		t.Errorf("cross-connects: %v", s.Connects)
	}
	for _, i := range s.Interfaces {
		if s.Policed[i.Index] || s.Classified[i.Index] {
			t.Errorf("%s is policed", i.Name)
		}
	}
	for _, tunnel := range s.Tunnels {
		if i := s.ByIndex(tunnel.Index); !i.AdminUp || i.Tag == "" {
			t.Errorf("%s is up: %v, with the tag %q", i.Name, i.AdminUp, i.Tag)
		}
	}
	if len(s.Tunnels) != len(ends) {
		t.Errorf("%d tunnels, want %d", len(s.Tunnels), len(ends))
	}
}

func TestLineIsTestedConnectedAndTestedAgain(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		apart, joined := r.testedEnds(true), r.testedEnds(false)
		for range 2 {
			outcome := r.put(apart)
			outcome.mustAllBe(t, "testing")
			for _, end := range outcome.Ends {
				if end.Policed {
					t.Errorf("%s is said to be policed", end.Key)
				}
			}
			r.mustBeApart(t, apart)
			before := r.writes()
			r.put(apart).mustAllBe(t, "testing")
			r.CheckDrift(t.Context())
			if r.writes() != before {
				t.Errorf("%d messages for what is as it should be", r.writes()-before)
			}
			r.put(joined).mustAllBe(t, "verified")
			if s := r.snapshot(); len(s.Connects) != 2*len(joined) {
				t.Errorf("cross-connects: %v", s.Connects)
			}
		}
		r.put(apart)
		var gone []intent.Tombstone
		for _, end := range apart {
			gone = append(gone, tombstone(end))
		}
		r.put(nil, gone...).mustAllBe(t, "removed")
		if s := r.snapshot(); len(s.Tunnels) != 0 || len(s.Policers) != 0 {
			t.Errorf("left: %v, %v", s.Tunnels, s.Policers)
		}
	})
}

func TestForeignConnectionOfATestedTunnelIsRemovedAndReported(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		end := vxlanEnd(1, r.ports[0])
		end.Testing = true
		r.put([]intent.End{end}).mustAllBe(t, "testing")
		s := r.snapshot()
		tunnel := interface_types.InterfaceIndex(s.Tunnels[0].Index)
		access := interface_types.InterfaceIndex(s.Subs(s.ByName(r.ports[0]).Index)[0].Index)
		for name, join := range map[string]func(){
			"a cross-connect": func() {
				r.must(&l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: tunnel, TxSwIfIndex: access, Enable: true})
			},
			"a bridge": func() { r.must(&l2.SwInterfaceSetL2Bridge{RxSwIfIndex: tunnel, BdID: 9, Enable: true}) },
		} {
			join()
			r.CheckDrift(t.Context())
			s := r.snapshot()
			if _, bridged := s.Bridged[uint32(tunnel)]; bridged || len(s.Connects) != 0 {
				t.Errorf("%s is left: %v, %v", name, s.Connects, s.Bridged)
			}
			state, err := r.ObservedStateToReport(t.Context())
			if err != nil || len(state.Drift[end.Key]) != 1 || state.Drift[end.Key][0].Field != "xconnect" {
				t.Errorf("%s is reported as %+v, %v", name, state.Drift, err)
			}
			clear(r.contests)
		}
	})
}

func TestForeignCrossConnectOfAWholePortIsAConflict(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		index := func(name string) interface_types.InterfaceIndex {
			return interface_types.InterfaceIndex(r.snapshot().ByName(name).Index)
		}
		r.must(&l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: index(r.ports[1]), TxSwIfIndex: index(r.ports[2]), Enable: true})
		r.must(&interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: index(r.ports[1]), Tag: "lab"})
		end := vxlanEnd(1, r.ports[1])
		end.Access, end.Testing = intent.Access{Interface: r.ports[1], Tagging: intent.Untagged, Exact: true}, true
		outcome := r.put([]intent.End{end})
		if got := outcome.Ends[0]; got.Status != "conflict" || got.Reason.Code != "port_in_use" {
			t.Errorf("answered %+v %+v", got, got.Reason)
		}
		if s := r.snapshot(); s.Connects[uint32(index(r.ports[1]))] != uint32(index(r.ports[2])) {
			t.Errorf("theirs is gone: %v", s.Connects)
		}
	})
}
