package converge

import (
	"os"
	"path/filepath"
	"testing"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"longline.dev/agent/internal/intent"
)

// TestPortFollowsTheFarEndsLink also checks that a port that another client sets up is shut down again.
func TestPortFollowsTheFarEndsLink(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		port := r.ports[0]
		end := wholePort(1, port)
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		end.UNILinkDown = true
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		if r.snapshot().ByName(port).AdminUp {
			t.Fatal("the port is up")
		}
		r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: r.index(port), Flags: interface_types.IF_STATUS_API_FLAG_ADMIN_UP})
		if !r.repair(t.Context()) || r.snapshot().ByName(port).AdminUp {
			t.Error("the port that another client set up is not down again")
		}
		end.UNILinkDown = false
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		if !r.snapshot().ByName(port).AdminUp {
			t.Error("the port stayed down")
		}
	})
}

// TestPortWithAForeignUseIsNotShutDown, not even if the line had the port alone when this was requested.
func TestPortWithAForeignUseIsNotShutDown(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		uses := map[string]func(){
			r.ports[0]: func() { r.subByHand(r.ports[0], 7, 7) },
			// Only a reading of the port's uses shows these.
			r.ports[1]: func() { r.setTable(r.ports[1], false, 10) },
			r.ports[2]: func() { r.bond(r.ports[2]) },
		}
		var ends []intent.End
		for n, port := range r.ports[:3] {
			ends = append(ends, wholePort(n+1, port))
		}
		r.put(ends).mustAllBe(t, "verified")
		for n := range ends {
			uses[ends[n].Access.Interface]()
			ends[n].UNILinkDown = true
		}
		for _, e := range r.put(ends).Ends {
			if e.Status != "conflict" || e.Reason.Code != "port_in_use" {
				t.Errorf("%s is %s: %+v", e.Key, e.Status, e.Reason)
			}
		}
		for port := range uses {
			if !r.snapshot().ByName(port).AdminUp {
				t.Errorf("%s was taken down", port)
			}
		}
	})
}

// TestPortComesUpForAForeignUse also covers an agent that has restarted in the meantime. If the foreign
// user shuts the port down afterwards, it stays down.
func TestPortComesUpForAForeignUse(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		port := r.ports[0]
		end := wholePort(1, port)
		r.put([]intent.End{end})
		end.UNILinkDown = true
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		r.subByHand(port, 7, 7)
		r.open()
		if !r.repair(t.Context()) || !r.snapshot().ByName(port).AdminUp {
			t.Fatal("the port is still down")
		}
		if e := r.Converge(t.Context()).of(t, end.Key); e.Status != "conflict" || e.Reason.Code != "port_in_use" {
			t.Errorf("the end is %s: %+v", e.Status, e.Reason)
		}
		r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: r.index(port)})
		r.repair(t.Context())
		if r.snapshot().ByName(port).AdminUp {
			t.Error("the port was set up against its user")
		}
	})
}

// TestPortComesUpForAForeignUseUnderReportOnly: the agent had shut down the port.
func TestPortComesUpForAForeignUseUnderReportOnly(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.options.Repair = ReportOnly
		port := r.ports[0]
		end := wholePort(1, port)
		r.put([]intent.End{end})
		end.UNILinkDown = true
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		r.subByHand(port, 7, 7)
		r.repair(t.Context())
		if !r.snapshot().ByName(port).AdminUp {
			t.Error("another client uses the port, and it is down")
		}
	})
}

// TestPortComesUpAlthoughItsEndIsBlocked: otherwise the far end would be shut down because of this port.
func TestPortComesUpAlthoughItsEndIsBlocked(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		port := r.ports[0]
		end := wholePort(1, port)
		r.put([]intent.End{end})
		end.UNILinkDown = true
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		for _, tunnel := range r.snapshot().Tunnels {
			r.must(&interfaces.SwInterfaceTagAddDel{IsAdd: false, SwIfIndex: interface_types.InterfaceIndex(tunnel.Index)})
		}
		r.repair(t.Context())
		if r.snapshot().ByName(port).AdminUp {
			t.Fatal("the port is up, and the far end's link is not")
		}
		end.UNILinkDown = false
		if e := r.put([]intent.End{end}).of(t, end.Key); e.Status != "conflict" || e.Reason.Code != "relabelled" {
			t.Errorf("the end is %s: %+v", e.Status, e.Reason)
		}
		if !r.snapshot().ByName(port).AdminUp {
			t.Error("the far end's link is back, and the port is down")
		}
	})
}

// TestPortComesUpWhenItsLineIsGone: the line is removed, released, moved or left out of the document. The
// journal may be lost, or the port may have been down before.
func TestPortComesUpWhenItsLineIsGone(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		port := r.ports[0]
		for n, how := range []string{"removed", "removed without a journal", "removed, found down", "moved", "left out", "released"} {
			end := wholePort(n+1, port)
			if how == "removed, found down" {
				r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: r.index(port)})
			}
			r.put([]intent.End{end})
			end.UNILinkDown = true
			r.put([]intent.End{end}).mustAllBe(t, "verified")
			if how == "removed without a journal" {
				if err := os.Remove(filepath.Join(r.folder, "journal.json")); err != nil {
					t.Fatal(err)
				}
				r.open()
				r.Converge(t.Context()).mustAllBe(t, "verified")
			}
			r.open()
			switch moved := end; how {
			case "moved":
				moved.Access.Interface, moved.Revision = r.ports[1], 2
				r.put([]intent.End{moved}).mustAllBe(t, "verified")
			case "left out":
				r.put(nil)
			default:
				gone := tombstone(end)
				gone.Release = how == "released"
				r.put(nil, gone).mustAllBe(t, "removed")
			}
			if now := r.snapshot().ByName(port); !now.AdminUp || now.Tag != "" && how != "left out" {
				t.Errorf("%s: the port is %+v", how, now)
			}
			r.put(nil, tombstone(end))
		}
	})
}
