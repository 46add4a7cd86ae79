package main

import (
	"context"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/geneve"
	"go.fd.io/govpp/binapi/gre"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/vxlan"

	"longline.dev/agent/internal/vpp"
)

const every = ^interface_types.InterfaceIndex(0)

// iface is an interface. Parent is the index of the port for a sub-interface, and the interface's own
// index otherwise. Rewrite is VPP's tag rewrite operation: 0 means none, 3 removes one tag, 4 removes two
// tags.
type iface struct {
	Index   uint32 `json:"index"`
	Name    string `json:"name"`
	Tag     string `json:"tag"`
	Parent  uint32 `json:"parent"`
	AdminUp bool   `json:"admin_up"`
	Tags    uint8  `json:"tags"`
	Outer   uint16 `json:"outer"`
	Inner   uint16 `json:"inner"`
	Dot1ad  bool   `json:"dot1ad"`
	Exact   bool   `json:"exact"`
	Rewrite uint32 `json:"rewrite"`
}

type tunnel struct {
	Index  uint32 `json:"index"`
	Kind   string `json:"kind"`
	Local  string `json:"local"`
	Remote string `json:"remote"`
	VNI    uint32 `json:"vni"`
	GREKey uint32 `json:"gre_key"`

	deletion api.Message
}

// connect is one direction of a cross-connect. From and To are indices of interfaces.
type connect struct {
	From uint32 `json:"from"`
	To   uint32 `json:"to"`
}

type shown struct {
	Interfaces []iface   `json:"interfaces"`
	Tunnels    []tunnel  `json:"tunnels"`
	Connects   []connect `json:"connects"`
}

func show(ctx context.Context, session *vpp.Session) (shown, error) {
	all, err := dumpInterfaces(ctx, session)
	if err != nil {
		return shown{}, err
	}
	s := shown{Interfaces: all, Tunnels: []tunnel{}, Connects: []connect{}}
	var greDump api.Message = &gre.GreTunnelDump{SwIfIndex: every}
	if keys := (&gre.GreTunnelDumpV2{SwIfIndex: every}); session.Has(keys) {
		greDump = keys
	}
	err = session.Dump(ctx, []api.Message{
		&vxlan.VxlanTunnelV2Dump{SwIfIndex: every}, &geneve.GeneveTunnelDump{SwIfIndex: every}, greDump, &l2.L2XconnectDump{},
	}, s.add)
	return s, err
}

func (s *shown) add(message api.Message) {
	switch m := message.(type) {
	case *vxlan.VxlanTunnelV2Details:
		s.Tunnels = append(s.Tunnels, tunnel{
			uint32(m.SwIfIndex), "vxlan", m.SrcAddress.String(), m.DstAddress.String(), m.Vni, 0,
			&vxlan.VxlanAddDelTunnelV3{
				Instance: m.Instance, SrcAddress: m.SrcAddress, DstAddress: m.DstAddress, SrcPort: m.SrcPort, DstPort: m.DstPort,
				EncapVrfID: m.EncapVrfID, DecapNextIndex: m.DecapNextIndex, Vni: m.Vni, McastSwIfIndex: every,
			},
		})
	case *geneve.GeneveTunnelDetails:
		s.Tunnels = append(s.Tunnels, tunnel{
			uint32(m.SwIfIndex), "geneve", m.SrcAddress.String(), m.DstAddress.String(), m.Vni, 0,
			&geneve.GeneveAddDelTunnel2{
				LocalAddress: m.SrcAddress, RemoteAddress: m.DstAddress, EncapVrfID: m.EncapVrfID, DecapNextIndex: m.DecapNextIndex,
				Vni: m.Vni, McastSwIfIndex: every,
			},
		})
	case *gre.GreTunnelDetails:
		t := m.Tunnel
		s.Tunnels = append(s.Tunnels, tunnel{
			uint32(t.SwIfIndex), "gre", t.Src.String(), t.Dst.String(), 0, 0, &gre.GreTunnelAddDel{Tunnel: t},
		})
	case *gre.GreTunnelDetailsV2:
		t := m.Tunnel
		s.Tunnels = append(s.Tunnels, tunnel{
			uint32(t.SwIfIndex), "gre", t.Src.String(), t.Dst.String(), 0, t.Key, &gre.GreTunnelAddDelV2{Tunnel: t},
		})
	case *l2.L2XconnectDetails:
		s.Connects = append(s.Connects, connect{uint32(m.RxSwIfIndex), uint32(m.TxSwIfIndex)})
	}
}

func dumpInterfaces(ctx context.Context, session *vpp.Session) ([]iface, error) {
	var all []iface
	request := []api.Message{&interfaces.SwInterfaceDump{SwIfIndex: every}}
	err := session.Dump(ctx, request, func(message api.Message) {
		m, ok := message.(*interfaces.SwInterfaceDetails)
		if !ok {
			return
		}
		all = append(all, iface{
			Index: uint32(m.SwIfIndex), Name: vpp.Text(m.InterfaceName), Tag: vpp.Text(m.Tag), Parent: m.SupSwIfIndex,
			AdminUp: m.Flags&interface_types.IF_STATUS_API_FLAG_ADMIN_UP != 0,
			Tags:    m.SubNumberOfTags, Outer: m.SubOuterVlanID, Inner: m.SubInnerVlanID,
			Dot1ad:  m.SubIfFlags&interface_types.SUB_IF_API_FLAG_DOT1AD != 0,
			Exact:   m.SubIfFlags&interface_types.SUB_IF_API_FLAG_EXACT_MATCH != 0,
			Rewrite: m.VtrOp,
		})
	})
	return all, err
}

// walkMs is the interval (ms) between VPP's searches for packets whose fragments have not all arrived in
// time. By default, VPP searches 20 times a second for each address family, and busy-waits for the last
// millisecond before each search.
const walkMs = 1000

// walkSlowly sets the interval to walkMs. It does not change the reassembly timeout and the maximum
// number of concurrent reassemblies.
func walkSlowly(ctx context.Context, session *vpp.Session) error {
	for _, isIP6 := range []bool{false, true} {
		now, err := called(ctx, session, &ip.IPReassemblyGet{IsIP6: isIP6, Type: ip.IP_REASS_TYPE_FULL})
		if err != nil {
			return err
		}
		is := now.(*ip.IPReassemblyGetReply)
		if _, err := called(ctx, session, &ip.IPReassemblySet{
			TimeoutMs: is.TimeoutMs, MaxReassemblies: is.MaxReassemblies, MaxReassemblyLength: is.MaxReassemblyLength,
			ExpireWalkIntervalMs: walkMs, IsIP6: isIP6, Type: ip.IP_REASS_TYPE_FULL,
		}); err != nil {
			return err
		}
	}
	return nil
}

// called sends a request and returns the reply. If VPP refuses the request, it returns an error.
func called(ctx context.Context, session *vpp.Session, request api.Message) (api.Message, error) {
	reply, err := session.Call(ctx, request)
	if err != nil {
		return nil, err
	}
	return reply, api.RetvalToVPPApiError(vpp.Retval(reply))
}
