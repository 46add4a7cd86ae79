package converge

import (
	"testing"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"longline.dev/agent/internal/intent"
)

// TestAPortThatSomebodyShutAndMarkedIsLeftDownUntilTheySetItUp: then the line is built without being asked for again.
func TestAPortThatSomebodyShutAndMarkedIsLeftDownUntilTheySetItUp(t *testing.T) {
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
