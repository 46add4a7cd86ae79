package tunnel

import (
	"fmt"
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/vxlan"

	"longline.dev/agent/internal/vpp"
)

// vxlanPort is VPP's default UDP port (RFC 7348).
const vxlanPort = 4789

var vxlanKind = &Kind{
	Encapsulation: VXLAN,
	Needs:         []api.Message{&vxlan.VxlanAddDelTunnelV3{}, &vxlan.VxlanTunnelV2Dump{}},
	HasVNI:        true,

	Device:     "VXLAN", // vxlan.c
	NamePrefix: "vxlan_tunnel",
	UpWhenNew:  true,
	SharesKeys: true,
	Vppcfg:     AsTunnel,

	AddDel: func(t Tunnel, add bool) api.Message {
		return &vxlan.VxlanAddDelTunnelV3{
			IsAdd: add, Instance: none, SrcAddress: vpp.IPAddress(t.Local), DstAddress: vpp.IPAddress(t.Remote), EncapVrfID: t.Table,
			Vni: t.VNI, McastSwIfIndex: interface_types.InterfaceIndex(none), DecapNextIndex: none,
		}
	},
	CLI: func(t Tunnel, suffix string) string {
		return fmt.Sprintf("create vxlan tunnel src %s dst %s vni %d%s%s", t.Local, t.Remote, t.VNI, inTable("encap-vrf-id", t.Table), suffix)
	},
	Refuses: func(Tunnel, bool) string { return "" },
	Dump: func(_ Has, at interface_types.InterfaceIndex) api.Message {
		return &vxlan.VxlanTunnelV2Dump{SwIfIndex: at}
	},
	key: func(t Tunnel) Tunnel {
		if t.Remote.Is6() { // vxlan.h: the key of VXLAN over IPv6 does not contain the local address
			t.Local = netip.Addr{}
		}
		return t
	},
	found: func(details api.Message) *Found {
		m, ok := details.(*vxlan.VxlanTunnelV2Details)
		if !ok {
			return nil
		}
		return &Found{
			Index: uint32(m.SwIfIndex),
			Tunnel: Tunnel{
				Encapsulation: VXLAN, Local: vpp.NetipAddr(m.SrcAddress), Remote: vpp.NetipAddr(m.DstAddress), VNI: m.Vni,
				Table: m.EncapVrfID,
			},
			Default: m.DstPort == vxlanPort || m.DstPort == 0,
		}
	},
}
