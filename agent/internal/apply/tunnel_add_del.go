package apply

import (
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/geneve"
	"go.fd.io/govpp/binapi/gre"
	"go.fd.io/govpp/binapi/vxlan"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/vpp"
)

// tunnelAddDel returns the message that creates a tunnel in VPP if add is true, and otherwise the message
// that deletes it.
func tunnelAddDel(t intent.Tunnel, add bool) api.Message {
	local, remote := vpp.IPAddress(t.Local), vpp.IPAddress(t.Remote)
	switch t.Encapsulation {
	case intent.VXLAN:
		return &vxlan.VxlanAddDelTunnelV3{
			IsAdd: add, Instance: none, SrcAddress: local, DstAddress: remote, EncapVrfID: t.Table, Vni: t.VNI,
			McastSwIfIndex: index(none), DecapNextIndex: none,
		}
	case intent.GENEVE:
		return &geneve.GeneveAddDelTunnel2{
			IsAdd: add, LocalAddress: local, RemoteAddress: remote, EncapVrfID: t.Table, Vni: t.VNI,
			McastSwIfIndex: index(none), DecapNextIndex: none,
		}
	}
	if t.GREKey != 0 {
		return &gre.GreTunnelAddDelV2{IsAdd: add, Tunnel: gre.GreTunnelV2{
			Type: gre.GRE_API_TUNNEL_TYPE_TEB, Instance: none, Src: local, Dst: remote, Key: t.GREKey, OuterTableID: t.Table,
		}}
	}
	return &gre.GreTunnelAddDel{IsAdd: add, Tunnel: gre.GreTunnel{
		Type: gre.GRE_API_TUNNEL_TYPE_TEB, Instance: none, Src: local, Dst: remote, OuterTableID: t.Table,
	}}
}
