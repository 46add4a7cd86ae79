package observe

import (
	"math"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"longline.dev/agent/internal/vpp"
)

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
