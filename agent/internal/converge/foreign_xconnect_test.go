package converge

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"

	"longline.dev/agent/internal/intent"
)

// foreignSender returns the foreign sub-interface that the next two functions connect.
func (r *router) foreignSender() string { return r.ports[3] + ".800" }

// sendInto makes a foreign sub-interface send into an interface, which does not send back.
func (r *router) sendInto(name string) {
	r.t.Helper()
	r.subByHand(r.ports[3], 800, 800)
	r.must(&interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: r.index(r.foreignSender()), Tag: "somebody's"})
	r.must(&l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: r.index(r.foreignSender()), TxSwIfIndex: r.index(name), Enable: true})
}

// sendIntoNextInterface makes the foreign sub-interface send into the index of the next created interface.
func (r *router) sendIntoNextInterface() {
	r.t.Helper()
	made := r.must(&interfaces.CreateLoopbackInstance{IsSpecified: true, UserInstance: 800}).(*interfaces.CreateLoopbackInstanceReply)
	r.sendInto("loop800")
	r.must(&interfaces.DeleteLoopback{SwIfIndex: interface_types.InterfaceIndex(made.SwIfIndex)})
}

func TestInterfaceWithAForeignSenderIsAConflict(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(r *router, access, tunnel string)
		whole   bool
		later   bool // after the line was built
	}{
		"a port that is to be taken":         {prepare: func(r *router, access, _ string) { r.sendInto(access) }, whole: true},
		"an interface that is made just now": {prepare: func(r *router, _, _ string) { r.sendIntoNextInterface() }},
		"an access in service":               {prepare: func(r *router, access, _ string) { r.sendInto(access) }, later: true},
		"a tunnel in service":                {prepare: func(r *router, _, tunnel string) { r.sendInto(tunnel) }, later: true},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryVPP(t, func(t *testing.T, r *router) {
				end, other := vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[0])
				access := r.ports[0] + ".101"
				if c.whole {
					access = r.ports[1]
					end.Access = accessOf(intent.Untagged, access)
				}
				if c.later {
					r.put([]intent.End{end}).mustAllBe(t, "verified")
				}
				c.prepare(r, access, "vxlan_tunnel0")
				theirs := r.snapshot().ByName(r.foreignSender())
				into := r.snapshot().Connects[theirs.Index]
				for _, o := range []*Outcome{r.put([]intent.End{end, other}), r.Converge(t.Context())} {
					if e := o.of(t, end.Key); e.Status != "conflict" || e.Reason.Code != "foreign_xconnect" || e.Reason.Object != describeInterface(theirs) {
						t.Errorf("got %+v %+v", e, e.Reason)
					}
					if e := o.of(t, other.Key); e.Status != "verified" {
						t.Errorf("the other is %+v %+v", e, e.Reason)
					}
				}
				if now := r.snapshot().Connects[theirs.Index]; now != into {
					t.Errorf("theirs sends into %d, and sent into %d", now, into)
				}
				r.disconnect(r.foreignSender())
				before := maps.Clone(r.snapshot().Connects)
				r.put([]intent.End{end, other}).mustAllBe(t, "verified")
				if c.later && !maps.Equal(before, r.snapshot().Connects) {
					t.Error("the line was connected again")
				}
			})
		})
	}
}

// TestLineIsRemovedWithAForeignSender also checks that the foreign frames reach no other line. Usually VPP
// gives the index to the next created interface.
func TestLineIsRemovedWithAForeignSender(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		end, next := vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[0])
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		r.sendInto("vxlan_tunnel0")
		before := r.snapshot()
		theirs := before.ByName(r.foreignSender())
		into := before.Connects[theirs.Index]
		for at, present := range [][]intent.End{nil, {next}} {
			session := record(r.session)
			r.Attach(session)
			outcome := r.put(present, tombstone(end))
			if e := outcome.of(t, end.Key); e.Status != "removed" {
				t.Errorf("%d: the removal is %+v %+v", at, e, e.Reason)
			}
			s := r.snapshot()
			if now := *s.ByName(r.foreignSender()); fmt.Sprintf("%+v", now) != fmt.Sprintf("%+v", *theirs) || s.Connects[theirs.Index] != into {
				t.Errorf("%d: theirs is %+v and sends into %d, was %+v and %d", at, now, s.Connects[theirs.Index], *theirs, into)
			}
			if messages := session.touched[theirs.Index]; len(messages) != 0 {
				t.Errorf("%d: theirs was touched by %v", at, messages)
			}
			if at == 0 {
				continue
			}
			if s.ByIndex(into) == nil {
				t.Fatal("VPP gave the next line other indices: the test shows nothing")
			}
			if e := outcome.of(t, next.Key); e.Status != "conflict" || e.Reason.Code != "foreign_xconnect" || e.Reason.Object != describeInterface(theirs) {
				t.Errorf("what got the index is %+v %+v", e, e.Reason)
			}
			if slices.Contains(session.touched[into], "sw_interface_set_l2_xconnect") {
				t.Errorf("it was put to use: %v", session.touched[into])
			}
		}
		r.disconnect(r.foreignSender())
		r.put([]intent.End{next}).mustAllBe(t, "verified")
	})
}
