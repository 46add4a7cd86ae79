package tunnel

import (
	"fmt"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/geneve"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/vpp"
)

type geneveKind struct{}

func (geneveKind) Device() string   { return "GENEVE" } // geneve.c
func (geneveKind) NewName() string  { return "geneve_tunnel<new>" }
func (geneveKind) SharesKeys() bool { return false }
func (geneveKind) MTU() uint32      { return 0 }
func (geneveKind) UpWhenNew() bool  { return true }

func (geneveKind) AddDel(t intent.Tunnel, add bool) api.Message {
	return &geneve.GeneveAddDelTunnel2{
		IsAdd: add, LocalAddress: vpp.IPAddress(t.Local), RemoteAddress: vpp.IPAddress(t.Remote), EncapVrfID: t.Table, Vni: t.VNI,
		McastSwIfIndex: interface_types.InterfaceIndex(none), DecapNextIndex: none,
	}
}

func (geneveKind) CLI(t intent.Tunnel, suffix string) string {
	return fmt.Sprintf("create geneve tunnel local %s remote %s vni %d%s%s", t.Local, t.Remote, t.VNI, inTable("encap-vrf-id", t.Table), suffix)
}

func (geneveKind) Made(reply api.Message) (interface_types.InterfaceIndex, bool) {
	if m, ok := reply.(*geneve.GeneveAddDelTunnel2Reply); ok {
		return m.SwIfIndex, true
	}
	return 0, false
}

func (geneveKind) Dump(_ Has, at interface_types.InterfaceIndex) api.Message {
	return &geneve.GeneveTunnelDump{SwIfIndex: at}
}

func (geneveKind) Found(details api.Message) *Found {
	m, ok := details.(*geneve.GeneveTunnelDetails)
	if !ok {
		return nil
	}
	return &Found{
		Index: uint32(m.SwIfIndex),
		Tunnel: intent.Tunnel{
			Encapsulation: intent.GENEVE, Local: vpp.NetipAddr(m.SrcAddress), Remote: vpp.NetipAddr(m.DstAddress), VNI: m.Vni,
			Table: m.EncapVrfID,
		},
		// For a tunnel over IPv6, VPP searches the table among the IPv4 tables, so the table that VPP reports
		// may be wrong.
		Default: m.EncapVrfID == 0 || m.DstAddress.Af == ip_types.ADDRESS_IP4,
	}
}

func (geneveKind) Needs() []api.Message {
	return []api.Message{&geneve.GeneveAddDelTunnel2{}, &geneve.GeneveTunnelDump{}}
}

func (geneveKind) Refuses(t intent.Tunnel, _ bool) string {
	if t.Table == 0 || t.Local.Is4() {
		return ""
	}
	return fmt.Sprintf(
		"VPP does not report the table of a GENEVE tunnel over IPv6, so none is created in table %d: use GENEVE over IPv4, or VXLAN or GRE", t.Table)
}
