package converge

import (
	"context"
	"maps"
	"slices"
	"testing"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/l2"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
)

// counted is a session that counts its messages by name.
type counted struct {
	*vpp.Session
	sent map[string]int
}

func (c *counted) Call(ctx context.Context, request api.Message) (api.Message, error) {
	c.sent[request.GetMessageName()]++
	return c.Session.Call(ctx, request)
}

func (c *counted) Calls(ctx context.Context, requests []api.Message) ([]api.Message, error) {
	for _, request := range requests {
		c.sent[request.GetMessageName()]++
	}
	return c.Session.Calls(ctx, requests)
}

func (c *counted) Dump(ctx context.Context, requests []api.Message, each func(api.Message)) error {
	return c.DumpEach(ctx, requests, func(_ int, answer api.Message) { each(answer) })
}

func (c *counted) DumpEach(ctx context.Context, requests []api.Message, each func(int, api.Message)) error {
	for _, request := range requests {
		c.sent[request.GetMessageName()]++
	}
	return c.Session.DumpEach(ctx, requests, each)
}

// count gives the engine a counted session, like a new connection.
func (r *router) count() *counted {
	session := &counted{r.session, make(map[string]int)}
	r.Attach(session)
	return session
}

// ofEachKind returns an end of each encapsulation.
func (r *router) ofEachKind() []intent.End {
	var ends []intent.End
	for n, encapsulation := range []intent.Encapsulation{intent.VXLAN, intent.GENEVE, intent.GRE} {
		end := vxlanEnd(n, r.ports[0])
		if end.Tunnel.Encapsulation = encapsulation; encapsulation == intent.GRE {
			end.Tunnel.VNI = 0
		}
		ends = append(ends, end)
	}
	return ends
}

func TestReportsSendNoMessagesToVPP(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		session := r.count()
		r.put(r.ofEachKind()).mustAllBe(t, "verified")
		clear(session.sent)
		for range 20 {
			p, err := r.ObservedStateToReport(t.Context())
			if err != nil || len(p.Plan.Owned) != 6 || len(p.Plan.Ops) != 0 {
				t.Fatalf("%v: %+v", err, p)
			}
		}
		if len(session.sent) != 0 {
			t.Errorf("sent %v", session.sent)
		}
	})
}

// TestCheckDriftReadsNoTunnels: VPP stops its workers for dumps of tunnels and of Linux CP pairs.
func TestCheckDriftReadsNoTunnels(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		session := r.count()
		r.put(r.ofEachKind()).mustAllBe(t, "verified")
		clear(session.sent)
		for range 10 {
			if r.repair(t.Context()) {
				t.Error("repaired without drift")
			}
		}
		delete(session.sent, "ip_address_dump") // two for each port
		want := map[string]int{
			"sw_interface_dump": 10, "l2_xconnect_dump": 10, "bridge_domain_dump": 10,
			"sw_interface_get_table": 20, // for the two host addresses, where tunnels may end
		}
		if !maps.Equal(session.sent, want) {
			t.Errorf("sent %v\nwant %v", session.sent, want)
		}
		if totals := r.Status().Statistics; totals.QuickObservations != 10 {
			t.Errorf("counted %d quick observations", totals.QuickObservations)
		}
	})
}

// TestQuickObservationFindsForeignChanges makes one foreign change at a time in VPP.
func TestQuickObservationFindsForeignChanges(t *testing.T) {
	const push1 = 1
	edits := map[string]struct {
		edit  func(r *router, access, tunnel string)
		field string
	}{
		"admin state":              {func(r *router, access, _ string) { r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: r.index(access)}) }, "admin_up"},
		"MTU":                      {func(r *router, _, tunnel string) { r.setMTU(tunnel, 1400) }, "mtu"},
		"cross-connect, one way":   {func(r *router, access, _ string) { r.disconnect(access) }, "xconnect"},
		"cross-connect, the other": {func(r *router, _, tunnel string) { r.disconnect(tunnel) }, "xconnect"},
		"cross-connect to another": {func(r *router, access, _ string) {
			r.must(&l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: r.index(access), TxSwIfIndex: r.index(r.ports[2]), Enable: true})
		}, "xconnect"},
		"tag rewrite": {func(r *router, access, _ string) {
			r.must(&l2.L2InterfaceVlanTagRewrite{SwIfIndex: r.index(access), VtrOp: push1, PushDot1q: 1, Tag1: 7})
		}, "rewrite"},
		"tag": {func(r *router, access, _ string) {
			r.must(&interfaces.SwInterfaceTagAddDel{SwIfIndex: r.index(access)})
		}, ""},
		"the tunnel":        {func(r *router, _, tunnel string) { r.deleteTunnel(tunnel) }, "exists"},
		"the sub-interface": {func(r *router, access, _ string) { r.must(&interfaces.DeleteSubif{SwIfIndex: r.index(access)}) }, "exists"},
	}
	for name, c := range edits {
		t.Run(name, func(t *testing.T) {
			onEveryVPP(t, func(t *testing.T, r *router) {
				ends := r.ofEachKind()
				gre := ends[2]
				r.put(ends).mustAllBe(t, "verified")
				access, tunnel := r.ports[0]+".102", r.tunnelOf(gre.Key)
				session := r.count()
				if _, err := r.ObservedStateToReport(t.Context()); err != nil { // so that there is a previous observation
					t.Fatal(err)
				}
				clear(session.sent)
				c.edit(r, access, tunnel)
				r.repair(t.Context())
				p, err := r.ObservedStateToReport(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				var fields []string
				for _, drift := range p.Drift[gre.Key] {
					fields = append(fields, drift.Field)
				}
				if c.field == "" { // without its tag it is not changed
					if reason := p.Plan.Blocked[gre.Key]; reason == nil || reason.Code != "relabelled" {
						t.Errorf("the end is blocked by %+v", reason)
					}
				} else if !slices.Contains(fields, c.field) {
					t.Errorf("reported: %v; sent %v", fields, session.sent)
				} else {
					if off := r.fieldsOff(); len(off) != 0 {
						t.Errorf("left as they were: %v", off)
					}
				}
			})
		})
	}
}

func (r *router) setMTU(name string, mtu uint32) {
	r.t.Helper()
	r.must(&interfaces.SwInterfaceSetMtu{SwIfIndex: r.index(name), Mtu: []uint32{mtu, 0, 0, 0}})
}

// tunnelOf returns the name of the end's tunnel.
func (r *router) tunnelOf(key intent.Key) string {
	r.t.Helper()
	p, err := r.ObservedState(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, h := range p.Plan.Owned {
		if h.End == key && h.Tunnel != nil {
			return h.Interface.Name
		}
	}
	r.t.Fatalf("%s has no tunnel", key)
	return ""
}

// deleteTunnel deletes a GRE tunnel as another client, regardless of its owner.
func (r *router) deleteTunnel(name string) {
	r.t.Helper()
	s := r.snapshot()
	i := s.ByName(name)
	for _, t := range s.Tunnels {
		if t.Index == i.Index {
			r.greTunnel(false, t.Tunnel)
		}
	}
}

// TestDriftIsReportedAlthoughItIsRepaired: otherwise operators would not learn of it.
func TestDriftIsReportedAlthoughItIsRepaired(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		end := vxlanEnd(1, r.ports[0])
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		r.disconnect(r.ports[0] + ".101")
		if !r.repair(t.Context()) {
			t.Fatal("nothing was repaired")
		}
		if first := r.driftOf(end.Key); !slices.Contains(first, "xconnect") {
			t.Errorf("reported: %v", first)
		}
		if again := r.driftOf(end.Key); len(again) != 0 {
			t.Errorf("reported again: %v", again)
		}
		r.options.Repair = ReportOnly
		r.disconnect(r.ports[0] + ".101")
		if r.repair(t.Context()) {
			t.Fatal("repaired under ReportOnly")
		}
		for range 2 {
			if stored := r.driftOf(end.Key); !slices.Contains(stored, "xconnect") {
				t.Errorf("under ReportOnly, reported: %v", stored)
			}
		}
	})
}

// driftOf returns the fields in which the end has drifted according to the observed state.
func (r *router) driftOf(key intent.Key) (fields []string) {
	r.t.Helper()
	p, err := r.ObservedStateToReport(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, d := range p.Drift[key] {
		fields = append(fields, d.Field)
	}
	return fields
}

// rereading is a session that counts the readings of objects before changes.
type rereading struct {
	*vpp.Session
	rounds int
}

func (r *rereading) DumpEach(ctx context.Context, requests []api.Message, each func(int, api.Message)) error {
	if dump, ok := requests[0].(*interfaces.SwInterfaceDump); ok && uint32(dump.SwIfIndex) != observe.NoIndex {
		r.rounds++ // an observation starts with a dump of all interfaces
	}
	return r.Session.DumpEach(ctx, requests, each)
}

// TestObjectsOfChangesAreReadOnce for each change of a line. Changes do not move the epoch of VPP's stats
// segment, except for creations and deletions, which come before or after all others.
func TestObjectsOfChangesAreReadOnce(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		end := vxlanEnd(1, r.ports[0])
		session := &rereading{Session: r.session}
		r.options.Epoch = statseg.NewReopeningSegment(r.stats).Epoch
		r.use(session)
		for n, step := range steps[:2] {
			step.change(&end)
			if r.put([]intent.End{end}).mustAllBe(t, "verified"); session.rounds != n+1 {
				t.Errorf("%s: read %d times by now", step.name, session.rounds)
			}
		}
		if r.put(nil, tombstone(end)).mustAllBe(t, "removed"); session.rounds != 3 {
			t.Errorf("remove: read %d times by now", session.rounds)
		}
	})
}
