package calibration

import (
	"context"
	"fmt"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/geneve"
	"go.fd.io/govpp/binapi/gre"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/tunnel_types"
	"go.fd.io/govpp/binapi/vxlan"

	"longline.dev/agent/internal/vpp"
)

// Lacks returns the name of the message that a VPP lacks for a transport, or "".
func Lacks(transport Transport, has func(api.Message) bool) string {
	var message api.Message
	switch transport {
	case VXLAN4, VXLAN6:
		message = &vxlan.VxlanAddDelTunnelV3{}
	case GENEVE4, GENEVE6:
		message = &geneve.GeneveAddDelTunnel2{}
	case GRE4, GRE6:
		message = &gre.GreTunnelAddDel{}
	}
	if message == nil || has(message) {
		return ""
	}
	return message.GetMessageName()
}

// makeTunnel creates the tunnel of a transport in the agent's table.
func makeTunnel(ctx context.Context, session Session, transport Transport) (interface_types.InterfaceIndex, error) {
	if request := tunnel(transport, true, session.Has); request != nil {
		reply, err := vpp.Do(ctx, session, request)
		if err != nil {
			return 0, err
		}
		switch m := reply.(type) {
		case *vxlan.VxlanAddDelTunnelV3Reply:
			return m.SwIfIndex, nil
		case *gre.GreTunnelAddDelV2Reply:
			return m.SwIfIndex, nil
		default:
			return reply.(*gre.GreTunnelAddDelReply).SwIfIndex, nil
		}
	}
	line := geneveLine(transport)
	text, _, err := vpp.RunCLI(ctx, session, line)
	if err != nil {
		return 0, err
	}
	name := strings.TrimSpace(text)
	index := interface_types.InterfaceIndex(none)
	named := &interfaces.SwInterfaceDump{SwIfIndex: index, NameFilterValid: true, NameFilter: "geneve_tunnel"}
	err = session.Dump(ctx, []api.Message{named}, func(msg api.Message) {
		if m, ok := msg.(*interfaces.SwInterfaceDetails); ok && vpp.Text(m.InterfaceName) == name {
			index = m.SwIfIndex
		}
	})
	if err == nil && index == interface_types.InterfaceIndex(none) {
		err = &vpp.RefusedError{Message: "cli_inband", Why: fmt.Sprintf("%q answered %q", line, name)}
	}
	return index, err
}

// deleteTunnel deletes the existing tunnel of a transport.
func deleteTunnel(ctx context.Context, session Session, transport Transport) error {
	request := tunnel(transport, false, session.Has)
	if request == nil {
		return vpp.Order(ctx, session, geneveLine(transport)+" del")
	}
	_, err := vpp.Do(ctx, session, request)
	return err
}

// tunnel returns the message that creates or deletes the tunnel of a transport, or nil for GENEVE. A GRE
// tunnel has a key if this VPP supports keys, like the tunnel of a line.
func tunnel(transport Transport, add bool, has func(api.Message) bool) api.Message {
	local, remote := vpp.IPAddress(near[transport.family()].Addr()), vpp.IPAddress(far[transport.family()])
	switch transport {
	case VXLAN4, VXLAN6:
		return &vxlan.VxlanAddDelTunnelV3{IsAdd: add, Instance: none, SrcAddress: local, DstAddress: remote, Vni: vni, EncapVrfID: tableID,
			McastSwIfIndex: interface_types.InterfaceIndex(none), DecapNextIndex: none}
	case GRE4, GRE6:
		if has(&gre.GreTunnelAddDelV2{}) {
			return &gre.GreTunnelAddDelV2{IsAdd: add, Tunnel: gre.GreTunnelV2{Type: gre.GRE_API_TUNNEL_TYPE_TEB,
				Mode: tunnel_types.TUNNEL_API_MODE_P2P, Instance: none, Src: local, Dst: remote, OuterTableID: tableID, Key: greKey}}
		}
		return &gre.GreTunnelAddDel{IsAdd: add, Tunnel: gre.GreTunnel{Type: gre.GRE_API_TUNNEL_TYPE_TEB,
			Mode: tunnel_types.TUNNEL_API_MODE_P2P, Instance: none, Src: local, Dst: remote, OuterTableID: tableID}}
	}
	return nil
}

// geneveLine returns the CLI command for a GENEVE tunnel. The binary API has an error with IPv6: it uses
// the number of the IPv4 table for the IPv6 table (plugins/geneve/geneve_api.c, 25.10). In a separate
// table, such an IPv6 tunnel has no route, and VPP crashes later.
func geneveLine(transport Transport) string {
	family := transport.family()
	return fmt.Sprintf("create geneve tunnel local %s remote %s vni %d encap-vrf-id %d", near[family].Addr(), far[family], vni, tableID)
}

// ownTunnels returns the transports with an existing tunnel. Only the agent has tunnels in this table.
func ownTunnels(ctx context.Context, session Session) ([]Transport, error) {
	every := interface_types.InterfaceIndex(none)
	var dumps []api.Message
	for _, dump := range []api.Message{&vxlan.VxlanTunnelV2Dump{SwIfIndex: every}, &geneve.GeneveTunnelDump{SwIfIndex: every}} {
		if session.Has(dump) {
			dumps = append(dumps, dump)
		}
	}
	if session.Has(&gre.GreTunnelDumpV2{}) {
		dumps = append(dumps, &gre.GreTunnelDumpV2{SwIfIndex: every})
	} else if session.Has(&gre.GreTunnelDump{}) {
		dumps = append(dumps, &gre.GreTunnelDump{SwIfIndex: every})
	}
	var existing []Transport
	note := func(v4, v6 Transport, table uint32, remote ip_types.Address) {
		switch {
		case table != tableID:
		case remote.Af == ip_types.ADDRESS_IP4:
			existing = append(existing, v4)
		default:
			existing = append(existing, v6)
		}
	}
	err := session.Dump(ctx, dumps, func(msg api.Message) {
		switch m := msg.(type) {
		case *vxlan.VxlanTunnelV2Details:
			note(VXLAN4, VXLAN6, m.EncapVrfID, m.DstAddress)
		case *geneve.GeneveTunnelDetails:
			note(GENEVE4, GENEVE6, m.EncapVrfID, m.DstAddress)
		case *gre.GreTunnelDetailsV2:
			note(GRE4, GRE6, m.Tunnel.OuterTableID, m.Tunnel.Dst)
		case *gre.GreTunnelDetails:
			note(GRE4, GRE6, m.Tunnel.OuterTableID, m.Tunnel.Dst)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("find tunnels: %w", err)
	}
	return existing, nil
}
