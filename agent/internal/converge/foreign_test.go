package converge

import (
	"maps"
	"testing"

	"go.fd.io/govpp/binapi/geneve"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/vxlan"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/plan"
	"longline.dev/agent/internal/vpp"
)

func (r *router) index(name string) interface_types.InterfaceIndex {
	r.t.Helper()
	i := r.snapshot().ByName(name)
	if i == nil {
		r.t.Fatalf("no interface %s", name)
	}
	return interface_types.InterfaceIndex(i.Index)
}

// subByHand creates an exact-match sub-interface as another client.
func (r *router) subByHand(port string, id uint32, vlan uint16) {
	r.t.Helper()
	r.must(&interfaces.CreateSubif{SwIfIndex: r.index(port), SubID: id, OuterVlanID: vlan,
		SubIfFlags: interface_types.SUB_IF_API_FLAG_ONE_TAG | interface_types.SUB_IF_API_FLAG_EXACT_MATCH})
}

func (r *router) tunnelByHand(t intent.Tunnel) {
	r.t.Helper()
	none := ^uint32(0)
	if t.Encapsulation == intent.GENEVE {
		r.must(&geneve.GeneveAddDelTunnel2{IsAdd: true, LocalAddress: vpp.IPAddress(t.Local), RemoteAddress: vpp.IPAddress(t.Remote),
			EncapVrfID: t.Table, Vni: t.VNI, McastSwIfIndex: interface_types.InterfaceIndex(none), DecapNextIndex: none})
		return
	}
	r.must(&vxlan.VxlanAddDelTunnelV3{IsAdd: true, Instance: none, SrcAddress: vpp.IPAddress(t.Local), DstAddress: vpp.IPAddress(t.Remote),
		EncapVrfID: t.Table, Vni: t.VNI, McastSwIfIndex: interface_types.InterfaceIndex(none), DecapNextIndex: none})
}

// disconnect removes an interface from its cross-connect.
func (r *router) disconnect(name string) {
	r.t.Helper()
	r.must(&l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: r.index(name), Enable: false})
}

func (o *Outcome) of(t *testing.T, key intent.Key) End {
	t.Helper()
	for _, e := range o.Ends {
		if e.Key == key {
			return e
		}
	}
	t.Fatalf("the outcome does not contain %s", key)
	return End{}
}

func TestForeignObjectsAreConflictsAndNotChanged(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		port := r.ports[0]
		vlan, tunnel, free := vxlanEnd(1, port), vxlanEnd(2, port), vxlanEnd(3, port)
		r.subByHand(port, 7, vlan.Access.Outer)
		r.tunnelByHand(tunnel.Tunnel)
		before := comparable(r.snapshot())
		outcome := r.put([]intent.End{vlan, tunnel, free})
		if e := outcome.of(t, vlan.Key); e.Status != "conflict" || e.Reason.Code != "foreign_subinterface" {
			t.Errorf("the VLAN: %+v %+v", e, e.Reason)
		}
		if e := outcome.of(t, tunnel.Key); e.Status != "conflict" || e.Reason.Code != "foreign_tunnel" {
			t.Errorf("the tunnel: %+v %+v", e, e.Reason)
		}
		if e := outcome.of(t, free.Key); e.Status != "verified" {
			t.Errorf("the free one: %+v %+v", e, e.Reason)
		}
		r.put(nil, tombstone(vlan), tombstone(tunnel), tombstone(free)).mustAllBe(t, "removed")
		if after := comparable(r.snapshot()); !maps.Equal(after, before) {
			t.Errorf("got  %v\nwant %v", after, before)
		}
	})
}

func TestEverythingIsCreatedAgainAfterARestartOfVPP(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		ends := []intent.End{vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[1])}
		r.put(ends).mustAllBe(t, "verified")
		r.restartVPP()
		if r.Ready() == nil {
			t.Error("ready before anything was applied")
		}
		r.Converge(t.Context()).mustAllBe(t, "verified")
		if err := r.Ready(); err != nil {
			t.Errorf("not ready: %v", err)
		}
	})
}

func TestUntaggedCreationsOfACrashAreAdopted(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		end := vxlanEnd(1, r.ports[0])
		in := &intent.Intent{Router: "rhino", Generation: 1, Present: []intent.End{end}}
		todo := plan.Diff(in, r.snapshot(), ownership.Journal{}, nil)
		if err := r.journal.Claim(ownership.Journal{Boot: boot(r.session), Claims: todo.CreationClaims}); err != nil {
			t.Fatal(err)
		}
		r.tunnelByHand(end.Tunnel)
		r.subByHand(r.ports[0], uint32(end.Access.Outer), end.Access.Outer)
		interfacesBefore := len(r.snapshot().Interfaces)
		r.open() // the agent starts again
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		if after := len(r.snapshot().Interfaces); after != interfacesBefore {
			t.Errorf("%d interfaces, before %d", after, interfacesBefore)
		}
		r.put(nil, tombstone(end)).mustAllBe(t, "removed")
	})
}

func TestInPlaceChangeKeepsInterfacesAndCrossConnects(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		end := vxlanEnd(1, r.ports[0])
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		before := r.snapshot().Connects
		for name, change := range map[string]func(*intent.End){
			"revision": func(e *intent.End) { e.Revision++ },
			"down":     func(e *intent.End) { e.Revision++; e.AdminUp = false },
			"frame":    func(e *intent.End) { e.Revision++; e.Frame = 9000 },
		} {
			change(&end)
			r.put([]intent.End{end}).mustAllBe(t, "verified")
			s := r.snapshot()
			if !maps.Equal(s.Connects, before) {
				t.Errorf("%s: cross-connects became %v, were %v", name, s.Connects, before)
			}
		}
		if access := r.snapshot().ByName(r.ports[0] + ".101"); access == nil || access.AdminUp {
			t.Errorf("the access is %+v, want it down", access)
		}
	})
}

func TestDriftIsDetectedAndRepaired(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		end := vxlanEnd(1, r.ports[0])
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		access := r.index(r.ports[0] + ".101")
		r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: access, Flags: 0})
		r.must(&l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: access, Enable: false})
		stored, _ := r.store.Current()
		found, _, err := r.Plan(t.Context(), stored)
		if err != nil {
			t.Fatal(err)
		}
		fields := make(map[string]bool)
		for _, op := range found.Ops {
			fields[op.Drift.Field] = true
		}
		if !fields["admin_up"] || !fields["xconnect"] {
			t.Errorf("found %v", fields)
		}
		if !r.repair(t.Context()) {
			t.Error("nothing was repaired")
		}
		if left, _, err := r.Plan(t.Context(), stored); err != nil || len(left.Ops) != 0 {
			t.Errorf("%v, left to do: %+v", err, left.Ops)
		}
		if repairs := r.Status().Statistics.Repairs; repairs != 1 {
			t.Errorf("counted %d repairs", repairs)
		}
	})
}

func TestWholePortKeepsItsDescriptionAfterTheLine(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		end := vxlanEnd(1, r.ports[1])
		end.Access = intent.Access{Interface: r.ports[1], Tagging: intent.Untagged, Exact: true}
		r.must(&interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: r.index(r.ports[1]), Tag: "rack 3, blue cable"})
		before := comparable(r.snapshot())
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		r.open() // the claim must be on disk
		r.put(nil, tombstone(end)).mustAllBe(t, "removed")
		if after := comparable(r.snapshot()); !maps.Equal(after, before) {
			t.Errorf("got  %v\nwant %v", after, before)
		}
	})
}
