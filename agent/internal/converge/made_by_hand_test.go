package converge

import (
	"fmt"
	"slices"
	"testing"

	"go.fd.io/govpp/binapi/geneve"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/vxlan"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/plan"
	"longline.dev/agent/internal/vpp"
)

func describeInterface(i *observe.Interface) string { return plan.Describe(i) }

// furnishForeign creates foreign objects: a sub-interface with a foreign tag, cross-connected with a
// tunnel.
func (r *router) furnishForeign() {
	r.t.Helper()
	r.lineByHand(r.ports[3], 900, 900)
}

// lineByHand creates a foreign line: a sub-interface that is up and has a foreign tag, cross-connected with
// a tunnel that has the VLAN as its VNI.
func (r *router) lineByHand(port string, id uint32, vlan uint16) {
	r.t.Helper()
	r.subByHand(port, id, vlan)
	r.tunnelByHand(intent.Tunnel{Local: locals[4], Remote: remotes[4], VNI: uint32(vlan)})
	s := r.snapshot()
	sub := r.index(fmt.Sprintf("%s.%d", port, id))
	tunnel := interface_types.InterfaceIndex(s.Tunnels[slices.IndexFunc(s.Tunnels, func(t *observe.Tunnel) bool { return t.VNI == uint32(vlan) })].Index)
	r.must(&interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: sub, Tag: "somebody's"})
	r.must(&l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: sub, TxSwIfIndex: tunnel, Enable: true})
	r.must(&l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: tunnel, TxSwIfIndex: sub, Enable: true})
	r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: sub, Flags: interface_types.IF_STATUS_API_FLAG_ADMIN_UP})
}

// deleteByHand deletes a sub-interface or a tunnel.
func (r *router) deleteByHand(s *observe.Snapshot, i *observe.Interface) {
	r.t.Helper()
	if i.IsSub() {
		r.must(&interfaces.DeleteSubif{SwIfIndex: interface_types.InterfaceIndex(i.Index)})
		return
	}
	const none = ^uint32(0)
	nowhere := interface_types.InterfaceIndex(none)
	t := tunnelAt(s, i)
	local, remote := vpp.IPAddress(t.Local), vpp.IPAddress(t.Remote)
	switch t.Encapsulation {
	case intent.VXLAN:
		r.must(&vxlan.VxlanAddDelTunnelV3{Instance: none, SrcAddress: local, DstAddress: remote, Vni: t.VNI,
			McastSwIfIndex: nowhere, DecapNextIndex: none})
	case intent.GENEVE:
		r.must(&geneve.GeneveAddDelTunnel2{LocalAddress: local, RemoteAddress: remote, Vni: t.VNI, McastSwIfIndex: nowhere, DecapNextIndex: none})
	case intent.GRE:
		r.greTunnel(false, t.Tunnel)
	}
}

// tunnelAt returns nil for an interface that is not a tunnel.
func tunnelAt(s *observe.Snapshot, i *observe.Interface) *observe.Tunnel {
	for _, t := range s.Tunnels {
		if t.Index == i.Index {
			return t
		}
	}
	return nil
}

// deleteUntagged deletes interfaces without any tag.
func (r *router) deleteUntagged(t *testing.T) {
	t.Helper()
	s := r.snapshot()
	for _, i := range s.Interfaces {
		_, connected := s.Connects[i.Index]
		if i.Tag == "" && !connected && (i.IsSub() || tunnelAt(s, i) != nil) {
			r.deleteByHand(s, i)
		}
	}
}
