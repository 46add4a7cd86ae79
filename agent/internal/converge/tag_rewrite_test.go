package converge

import (
	"testing"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/l2"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/plan"
)

// TestTagRewriteOfAnEarlierInterfaceIsReset: VPP keeps a rewrite by interface index, and a rewrite that was
// set in L3 mode survives the interface.
func TestTagRewriteOfAnEarlierInterfaceIsReset(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		for name, access := range map[string]intent.Access{
			"a tunnel":        accessOf(intent.Dot1q, r.ports[1]),
			"a sub-interface": accessOf(intent.QinQ, r.ports[1]),
		} {
			t.Run(name, func(t *testing.T) {
				r.subByHand(r.ports[0], 7, 7)
				old := r.index(r.ports[0] + ".7")
				r.must(&l2.L2InterfaceVlanTagRewrite{SwIfIndex: old, VtrOp: plan.PopOne})
				r.must(&interfaces.DeleteSubif{SwIfIndex: old})
				end := vxlanEnd(1, r.ports[1])
				end.Access = access
				r.put([]intent.End{end}).mustAllBe(t, "verified")
				s := r.snapshot()
				for _, tunnel := range s.Tunnels {
					if i := s.ByIndex(tunnel.Index); i.Rewrite != 0 {
						t.Errorf("%s, which has the index %d, rewrites tags: %d", i.Name, i.Index, i.Rewrite)
					}
				}
				r.put(nil, tombstone(end)).mustAllBe(t, "removed")
			})
		}
	})
}

func TestTagRewriteOfAWholePortIsReset(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		const push1, dot1q = 1, 1
		r.must(&l2.L2InterfaceVlanTagRewrite{SwIfIndex: r.index(r.ports[1]), VtrOp: push1, PushDot1q: dot1q, Tag1: 9})
		end := vxlanEnd(1, r.ports[1])
		end.Access = accessOf(intent.Untagged, r.ports[1])
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		if port := r.snapshot().ByName(r.ports[1]); port.Rewrite != 0 {
			t.Errorf("the port rewrites tags: %d", port.Rewrite)
		}
	})
}
