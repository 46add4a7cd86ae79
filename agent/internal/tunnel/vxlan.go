package tunnel

import (
	"fmt"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/vxlan"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/vpp"
)

// vxlanPort is VPP's default UDP port (RFC 7348).
const vxlanPort = 4789

type vxlanKind struct{}

func (vxlanKind) Device() string   { return "VXLAN" } // vxlan.c
func (vxlanKind) NewName() string  { return "vxlan_tunnel<new>" }
func (vxlanKind) SharesKeys() bool { return true }
func (vxlanKind) MTU() uint32      { return 0 }
func (vxlanKind) UpWhenNew() bool  { return true }

func (vxlanKind) AddDel(t intent.Tunnel, add bool) api.Message {
	return &vxlan.VxlanAddDelTunnelV3{
		IsAdd: add, Instance: none, SrcAddress: vpp.IPAddress(t.Local), DstAddress: vpp.IPAddress(t.Remote), EncapVrfID: t.Table,
		Vni: t.VNI, McastSwIfIndex: interface_types.InterfaceIndex(none), DecapNextIndex: none,
	}
}

func (vxlanKind) CLI(t intent.Tunnel, suffix string) string {
	return fmt.Sprintf("create vxlan tunnel src %s dst %s vni %d%s%s", t.Local, t.Remote, t.VNI, inTable("encap-vrf-id", t.Table), suffix)
}

func (vxlanKind) Made(reply api.Message) (interface_types.InterfaceIndex, bool) {
	if m, ok := reply.(*vxlan.VxlanAddDelTunnelV3Reply); ok {
		return m.SwIfIndex, true
	}
	return 0, false
}

func (vxlanKind) Dump(_ Has, at interface_types.InterfaceIndex) api.Message {
	return &vxlan.VxlanTunnelV2Dump{SwIfIndex: at}
}

func (vxlanKind) Found(details api.Message) *Found {
	m, ok := details.(*vxlan.VxlanTunnelV2Details)
	if !ok {
		return nil
	}
	return &Found{
		Index: uint32(m.SwIfIndex),
		Tunnel: intent.Tunnel{
			Encapsulation: intent.VXLAN, Local: vpp.NetipAddr(m.SrcAddress), Remote: vpp.NetipAddr(m.DstAddress), VNI: m.Vni,
			Table: m.EncapVrfID,
		},
		Default: m.DstPort == vxlanPort || m.DstPort == 0,
	}
}

func (vxlanKind) Needs() []api.Message {
	return []api.Message{&vxlan.VxlanAddDelTunnelV3{}, &vxlan.VxlanTunnelV2Dump{}}
}

func (vxlanKind) Refuses(intent.Tunnel, bool) string { return "" }
