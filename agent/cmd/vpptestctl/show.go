package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/geneve"
	"go.fd.io/govpp/binapi/gre"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/vxlan"
)

const every = ^interface_types.InterfaceIndex(0)

// iface is an interface; Parent is its own index unless it is a sub-interface. Rewrite is VPP's tag
// rewrite operation: 0 none, 3 pop one, 4 pop two.
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
}

// connect is one direction of a cross-connect, by indices.
type connect struct {
	From uint32 `json:"from"`
	To   uint32 `json:"to"`
}

type shown struct {
	Interfaces []iface   `json:"interfaces"`
	Tunnels    []tunnel  `json:"tunnels"`
	Connects   []connect `json:"connects"`
}

func show(conn api.Connection) (shown, error) {
	s := shown{Tunnels: []tunnel{}, Connects: []connect{}}
	var err error
	if s.Interfaces, err = dumpInterfaces(conn); err != nil {
		return s, err
	}
	for _, request := range []api.Message{
		&vxlan.VxlanTunnelV2Dump{SwIfIndex: every}, &geneve.GeneveTunnelDump{SwIfIndex: every},
		&gre.GreTunnelDump{SwIfIndex: every}, &l2.L2XconnectDump{},
	} {
		if err := dump(conn, request, s.add); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *shown) add(message api.Message) {
	switch m := message.(type) {
	case *vxlan.VxlanTunnelV2Details:
		s.Tunnels = append(s.Tunnels,
			tunnel{uint32(m.SwIfIndex), "vxlan", m.SrcAddress.String(), m.DstAddress.String(), m.Vni})
	case *geneve.GeneveTunnelDetails:
		s.Tunnels = append(s.Tunnels,
			tunnel{uint32(m.SwIfIndex), "geneve", m.SrcAddress.String(), m.DstAddress.String(), m.Vni})
	case *gre.GreTunnelDetails:
		t := m.Tunnel
		s.Tunnels = append(s.Tunnels, tunnel{uint32(t.SwIfIndex), "gre", t.Src.String(), t.Dst.String(), 0})
	case *l2.L2XconnectDetails:
		s.Connects = append(s.Connects, connect{uint32(m.RxSwIfIndex), uint32(m.TxSwIfIndex)})
	}
}

func dumpInterfaces(conn api.Connection) ([]iface, error) {
	var all []iface
	err := dump(conn, &interfaces.SwInterfaceDump{SwIfIndex: every}, func(message api.Message) {
		m, ok := message.(*interfaces.SwInterfaceDetails)
		if !ok {
			return
		}
		all = append(all, iface{
			Index: uint32(m.SwIfIndex), Name: text(m.InterfaceName), Tag: text(m.Tag), Parent: m.SupSwIfIndex,
			AdminUp: m.Flags&interface_types.IF_STATUS_API_FLAG_ADMIN_UP != 0,
			Tags:    m.SubNumberOfTags, Outer: m.SubOuterVlanID, Inner: m.SubInnerVlanID,
			Dot1ad:  m.SubIfFlags&interface_types.SUB_IF_API_FLAG_DOT1AD != 0,
			Exact:   m.SubIfFlags&interface_types.SUB_IF_API_FLAG_EXACT_MATCH != 0,
			Rewrite: m.VtrOp,
		})
	})
	return all, err
}

// dump reads the details of one request until VPP answers the ping behind it.
func dump(conn api.Connection, request api.Message, each func(api.Message)) error {
	stream, err := conn.NewStream(context.Background())
	if err != nil {
		return err
	}
	defer stream.Close()
	for _, message := range []api.Message{request, &memclnt.ControlPing{}} {
		if err := stream.SendMsg(message); err != nil {
			return err
		}
	}
	for {
		message, err := stream.RecvMsg()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, last := message.(*memclnt.ControlPingReply); last {
			return nil
		}
		each(message)
	}
}

// text cuts a fixed-size string at its terminator.
func text(fixed string) string {
	cut, _, _ := strings.Cut(fixed, "\x00")
	return cut
}
