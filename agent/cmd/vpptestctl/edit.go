package main

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/gre"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/tunnel_types"

	"longline.dev/agent/internal/vpp"
)

// change returns the API request that changes the interface with this index.
type change func(interface_types.InterfaceIndex) api.Message

func addSub(vlan uint16) change {
	return func(port interface_types.InterfaceIndex) api.Message {
		return &interfaces.CreateSubif{
			SwIfIndex: port, SubID: uint32(vlan), OuterVlanID: vlan,
			SubIfFlags: interface_types.SUB_IF_API_FLAG_ONE_TAG | interface_types.SUB_IF_API_FLAG_EXACT_MATCH,
		}
	}
}

func deleteSub(index interface_types.InterfaceIndex) api.Message {
	return &interfaces.DeleteSubif{SwIfIndex: index}
}

func untag(index interface_types.InterfaceIndex) api.Message {
	return &interfaces.SwInterfaceTagAddDel{SwIfIndex: index, IsAdd: false}
}

func setAdmin(flags interface_types.IfStatusFlags) change {
	return func(index interface_types.InterfaceIndex) api.Message {
		return &interfaces.SwInterfaceSetFlags{SwIfIndex: index, Flags: flags}
	}
}

func disconnect(index interface_types.InterfaceIndex) api.Message {
	return &l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: index, Enable: false}
}

// edit returns the command that changes the interface with this name.
func edit(name string, request change) func(context.Context, *vpp.Session) error {
	return func(ctx context.Context, session *vpp.Session) error {
		all, err := dumpInterfaces(ctx, session)
		if err != nil {
			return err
		}
		for _, i := range all {
			if i.Name == name {
				_, err := called(ctx, session, request(interface_types.InterfaceIndex(i.Index)))
				return err
			}
		}
		return fmt.Errorf("VPP has no interface %s", name)
	}
}

// addGRE returns the request for a GRE tunnel. VPP's command line cannot be used, because it may refuse
// IPv6 (see tunnelCLI in internal/plan).
func addGRE(local, remote, instance string) (api.Message, error) {
	src, err := netip.ParseAddr(local)
	if err != nil {
		return nil, err
	}
	dst, err := netip.ParseAddr(remote)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseUint(instance, 10, 32)
	return &gre.GreTunnelAddDel{IsAdd: true, Tunnel: gre.GreTunnel{
		Type: gre.GRE_API_TUNNEL_TYPE_TEB, Mode: tunnel_types.TUNNEL_API_MODE_P2P, Instance: uint32(number),
		Src: vpp.IPAddress(src), Dst: vpp.IPAddress(dst),
	}}, err
}

func deleteTunnel(ctx context.Context, session *vpp.Session, name string) error {
	is, err := show(ctx, session)
	if err != nil {
		return err
	}
	for _, t := range is.Tunnels {
		at := slices.IndexFunc(is.Interfaces, func(i iface) bool { return i.Index == t.Index })
		if at >= 0 && is.Interfaces[at].Name == name {
			_, err := called(ctx, session, t.deletion)
			return err
		}
	}
	return fmt.Errorf("VPP has no tunnel %s", name)
}
