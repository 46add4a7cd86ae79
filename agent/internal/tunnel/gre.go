package tunnel

import (
	"fmt"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/gre"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/tunnel_types"

	"longline.dev/agent/internal/vpp"
)

// greKind is GRE with transparent Ethernet bridging (TEB). Tunnels with a key need the second version of the
// messages.
var greKind = &Kind{
	Encapsulation: GRE,
	Needs:         []api.Message{&gre.GreTunnelAddDel{}, &gre.GreTunnelDump{}},
	HasGREKey:     true,

	Device:     "GRE tunnel device", // gre.c
	NamePrefix: "gre",
	MTU:        9000,
	SharesKeys: true,
	Vppcfg:     AsPort,

	AddDel: func(t Tunnel, add bool) api.Message {
		tunnel := gre.GreTunnelV2{
			Type: gre.GRE_API_TUNNEL_TYPE_TEB, Instance: none, Src: vpp.IPAddress(t.Local), Dst: vpp.IPAddress(t.Remote), Key: t.GREKey,
			OuterTableID: t.Table,
		}
		if t.GREKey != 0 {
			return &gre.GreTunnelAddDelV2{IsAdd: add, Tunnel: tunnel}
		}
		return &gre.GreTunnelAddDel{IsAdd: add, Tunnel: gre.GreTunnel{
			Type: tunnel.Type, Instance: tunnel.Instance, Src: tunnel.Src, Dst: tunnel.Dst, OuterTableID: tunnel.OuterTableID,
		}}
	},
	// For a tunnel over IPv6, CLI returns a comment, which VPP's CLI ignores. Up to VPP 26.06,
	// create_gre_tunnel_command_fn does not pass the expected address family to unformat_ip46_address. Depending
	// on the compiler, VPP's CLI may therefore refuse IPv6 addresses.
	CLI: func(t Tunnel, suffix string) string {
		key := ""
		if t.GREKey != 0 {
			key = fmt.Sprintf(" key %d", t.GREKey)
		}
		line := fmt.Sprintf("create gre tunnel src %s dst %s%s teb%s%s", t.Local, t.Remote, inTable("outer-table-id", t.Table), key, suffix)
		if t.Local.Is6() {
			return "comment { VPP's CLI has no GRE over IPv6, only its API: " + line + " }"
		}
		return line
	},
	Refuses: func(t Tunnel, greKeys bool) string {
		if t.GREKey == 0 || greKeys {
			return ""
		}
		return "this VPP has no GRE keys: gre_tunnel_add_del_v2 and gre_tunnel_dump_v2 are absent from the message table"
	},
	// Dump returns the second version of the request if this VPP has it. A VPP with the second version omits
	// tunnels with keys from the replies to gre_tunnel_dump.
	Dump: func(has Has, at interface_types.InterfaceIndex) api.Message {
		if GREKeys(has) {
			return &gre.GreTunnelDumpV2{SwIfIndex: at}
		}
		return &gre.GreTunnelDump{SwIfIndex: at}
	},
	key: allFields,
	found: func(details api.Message) *Found {
		var t gre.GreTunnelV2
		switch m := details.(type) {
		case *gre.GreTunnelDetails:
			t = gre.GreTunnelV2{
				Type: m.Tunnel.Type, Mode: m.Tunnel.Mode, OuterTableID: m.Tunnel.OuterTableID, SwIfIndex: m.Tunnel.SwIfIndex,
				Src: m.Tunnel.Src, Dst: m.Tunnel.Dst,
			}
		case *gre.GreTunnelDetailsV2:
			t = m.Tunnel
		default:
			return nil
		}
		if t.Type != gre.GRE_API_TUNNEL_TYPE_TEB {
			return nil
		}
		return &Found{
			Index: uint32(t.SwIfIndex),
			Tunnel: Tunnel{
				Encapsulation: GRE, Local: vpp.NetipAddr(t.Src), Remote: vpp.NetipAddr(t.Dst), GREKey: t.Key, Table: t.OuterTableID,
			},
			Default: t.Mode == tunnel_types.TUNNEL_API_MODE_P2P,
		}
	},
}

// GREKeys reports whether this VPP can have several GRE tunnels between two addresses, distinguished by keys.
func GREKeys(has Has) bool {
	return vpp.Missing(has, &gre.GreTunnelAddDelV2{}, &gre.GreTunnelDumpV2{}) == ""
}
