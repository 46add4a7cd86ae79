package converge

import (
	"testing"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"longline.dev/agent/internal/intent"
)

// TestPortWithAForeignTagThatIsDownIsNotSetUp also checks that the line is built automatically when its
// owner sets the port up.
func TestPortWithAForeignTagThatIsDownIsNotSetUp(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		port := r.index(r.ports[0])
		r.must(&interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: port, Tag: "shut by the NOC, ticket 7"})
		r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: port})
		end := vxlanEnd(1, r.ports[0])
		if e := r.put([]intent.End{end}).of(t, end.Key); e.Status != "pending" || e.Reason.Code != "port_down" {
			t.Errorf("got %+v %+v", e, e.Reason)
		}
		if s := r.snapshot(); s.ByName(r.ports[0]).AdminUp || len(s.Subs(uint32(port))) != 0 {
			t.Error("the port was set up or used")
		}
		r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: port, Flags: interface_types.IF_STATUS_API_FLAG_ADMIN_UP})
		if !r.repair(t.Context()) {
			t.Error("nothing was done once it was up")
		}
		r.Converge(t.Context()).mustAllBe(t, "verified")
	})
}

// TestPortComesUpAfterALineThatShutItDown: during the cool-down of a removal, the line is down.
func TestPortComesUpAfterALineThatShutItDown(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		port := r.ports[0]
		r.must(&interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: r.index(port), Tag: "rack 3, blue cable"})
		line, vlan := vxlanEnd(1, port), vxlanEnd(2, port)
		line.Access = accessOf(intent.Untagged, port)
		r.put([]intent.End{line}).mustAllBe(t, "verified")
		line.AdminUp, line.Revision = false, 2
		r.put([]intent.End{line}).mustAllBe(t, "verified")
		if r.snapshot().ByName(port).AdminUp {
			t.Fatal("the line is to be down, and its port is up")
		}
		r.open() // the previous state of the port must be on disk
		r.put(nil, tombstone(line)).mustAllBe(t, "removed")
		if now := r.snapshot().ByName(port); !now.AdminUp || now.Tag != "rack 3, blue cable" {
			t.Errorf("afterwards the port is %+v", now)
		}
		r.put([]intent.End{vlan}).mustAllBe(t, "verified")
	})
}
