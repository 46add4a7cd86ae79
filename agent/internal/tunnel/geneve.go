package tunnel

import (
	"fmt"
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/geneve"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"

	"longline.dev/agent/internal/vpp"
)

var geneveKind = &Kind{
	Encapsulation: GENEVE,
	Needs:         []api.Message{&geneve.GeneveAddDelTunnel2{}, &geneve.GeneveTunnelDump{}},
	HasVNI:        true,

	Device:     "GENEVE", // geneve.c
	NamePrefix: "geneve_tunnel",
	UpWhenNew:  true,
	// The binary API has an error with GENEVE over IPv6: it uses the number of the IPv4 table for the IPv6 table
	// (plugins/geneve/geneve_api.c, 25.10). In a separate table, such a tunnel has no route, and VPP crashes
	// later.
	TableByCLI: true,
	Vppcfg:     Unnamed,

	AddDel: func(t Tunnel, add bool) api.Message {
		return &geneve.GeneveAddDelTunnel2{
			IsAdd: add, LocalAddress: vpp.IPAddress(t.Local), RemoteAddress: vpp.IPAddress(t.Remote), EncapVrfID: t.Table, Vni: t.VNI,
			McastSwIfIndex: interface_types.InterfaceIndex(none), DecapNextIndex: none,
		}
	},
	CLI: func(t Tunnel, suffix string) string {
		return fmt.Sprintf("create geneve tunnel local %s remote %s vni %d%s%s", t.Local, t.Remote, t.VNI, inTable("encap-vrf-id", t.Table), suffix)
	},
	Refuses: func(t Tunnel, _ bool) string {
		if t.Table == 0 || t.Local.Is4() {
			return ""
		}
		return fmt.Sprintf(
			"VPP does not report the table of a GENEVE tunnel over IPv6, so none is created in table %d: use GENEVE over IPv4, or VXLAN or GRE", t.Table)
	},
	Dump: func(_ Has, at interface_types.InterfaceIndex) api.Message {
		return &geneve.GeneveTunnelDump{SwIfIndex: at}
	},
	key: func(t Tunnel) Tunnel {
		t.Local, t.Table = netip.Addr{}, 0 // geneve.h: the key contains neither of them
		return t
	},
	found: func(details api.Message) *Found {
		m, ok := details.(*geneve.GeneveTunnelDetails)
		if !ok {
			return nil
		}
		return &Found{
			Index: uint32(m.SwIfIndex),
			Tunnel: Tunnel{
				Encapsulation: GENEVE, Local: vpp.NetipAddr(m.SrcAddress), Remote: vpp.NetipAddr(m.DstAddress), VNI: m.Vni,
				Table: m.EncapVrfID,
			},
			// For a tunnel over IPv6, VPP searches the table among the IPv4 tables, so the table that VPP reports
			// may be wrong.
			Default: m.EncapVrfID == 0 || m.DstAddress.Af == ip_types.ADDRESS_IP4,
		}
	},
}
