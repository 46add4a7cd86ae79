package observe

import (
	"math"

	"go.fd.io/govpp/binapi/geneve"
	"go.fd.io/govpp/binapi/gre"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/tunnel_types"
	"go.fd.io/govpp/binapi/vxlan"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/vpp"
)

// vxlanPort is VPP's default UDP port (RFC 7348).
const vxlanPort = 4789

func interfaceOf(m *interfaces.SwInterfaceDetails) *Interface {
	i := &Interface{
		Index: uint32(m.SwIfIndex), Sup: m.SupSwIfIndex,
		Name: vpp.Text(m.InterfaceName), Tag: vpp.Text(m.Tag), Device: vpp.Text(m.InterfaceDevType),
		AdminUp: m.Flags&interface_types.IF_STATUS_API_FLAG_ADMIN_UP != 0,
		LinkUp:  m.Flags&interface_types.IF_STATUS_API_FLAG_LINK_UP != 0,
		Rewrite: m.VtrOp, LinkMTU: uint32(m.LinkMtu), MAC: m.L2Address,
	}
	if m.LinkSpeed != math.MaxUint32 { // MaxUint32 also means unknown: format_vnet_hw_interface_link_speed
		i.SpeedBPS = uint64(m.LinkSpeed) * 1000 // VPP counts in kbit/s
	}
	if len(m.Mtu) >= 3 { // [L3, IPv4, IPv6, MPLS]
		i.L3MTU, i.IP4MTU, i.IP6MTU = m.Mtu[0], m.Mtu[1], m.Mtu[2]
	}
	if i.IsSub() {
		i.Sub = SubInterface{
			ID: m.SubID, Tags: m.SubNumberOfTags, Outer: m.SubOuterVlanID, Inner: m.SubInnerVlanID,
			Dot1ad:    m.SubIfFlags&interface_types.SUB_IF_API_FLAG_DOT1AD != 0,
			Exact:     m.SubIfFlags&interface_types.SUB_IF_API_FLAG_EXACT_MATCH != 0,
			Selection: selectionOf(m),
		}
	}
	return i
}

// selectionOf returns the criterion by which a sub-interface selects its frames. It checks the flags in the
// same order as VPP (ethernet_sw_interface_get_config in vnet/ethernet/node.c).
func selectionOf(m *interfaces.SwInterfaceDetails) Selection {
	has := func(flag interface_types.SubIfFlags) bool { return m.SubIfFlags&flag != 0 }
	switch {
	case m.Type != interface_types.IF_API_TYPE_SUB:
		return OtherThanTags
	case has(interface_types.SUB_IF_API_FLAG_DEFAULT):
		return DefaultSub
	case m.SubNumberOfTags == 0: // VPP reports no flag for "untagged"
		return UntaggedSub
	case has(interface_types.SUB_IF_API_FLAG_OUTER_VLAN_ID_ANY):
		return AnyOuter
	case has(interface_types.SUB_IF_API_FLAG_INNER_VLAN_ID_ANY):
		return AnyInner
	}
	return ByVLANs
}

func vxlanOf(m *vxlan.VxlanTunnelV2Details) *Tunnel {
	return &Tunnel{
		Index: uint32(m.SwIfIndex),
		Tunnel: intent.Tunnel{
			Encapsulation: intent.VXLAN, Local: vpp.NetipAddr(m.SrcAddress), Remote: vpp.NetipAddr(m.DstAddress), VNI: m.Vni,
			Table: m.EncapVrfID,
		},
		Default: m.DstPort == vxlanPort || m.DstPort == 0,
	}
}

func geneveOf(m *geneve.GeneveTunnelDetails) *Tunnel {
	return &Tunnel{
		Index: uint32(m.SwIfIndex),
		Tunnel: intent.Tunnel{
			Encapsulation: intent.GENEVE, Local: vpp.NetipAddr(m.SrcAddress), Remote: vpp.NetipAddr(m.DstAddress), VNI: m.Vni,
			Table: m.EncapVrfID,
		},
		// For a tunnel over IPv6, VPP looks up the table among the IPv4 tables, so the table that VPP reports may
		// be wrong.
		Default: m.EncapVrfID == 0 || m.DstAddress.Af == ip_types.ADDRESS_IP4,
	}
}

// addGRE adds a GRE tunnel if it carries Ethernet frames (TEB).
func (s *Snapshot) addGRE(t gre.GreTunnelV2) {
	if t.Type != gre.GRE_API_TUNNEL_TYPE_TEB {
		return
	}
	s.Tunnels = append(s.Tunnels, &Tunnel{
		Index: uint32(t.SwIfIndex),
		Tunnel: intent.Tunnel{
			Encapsulation: intent.GRE, Local: vpp.NetipAddr(t.Src), Remote: vpp.NetipAddr(t.Dst), GREKey: t.Key,
			Table: t.OuterTableID,
		},
		Default: t.Mode == tunnel_types.TUNNEL_API_MODE_P2P,
	})
}
