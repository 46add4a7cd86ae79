// Command vpptestctl shows and changes the configuration of a VPP. Tests that simulate faults use it to
// check the agent. It shares only the connection to VPP with the agent.
//
// vpptestctl does not use govpp's connection, which does not always deregister from VPP. If the message table
// lists sockclnt_delete_reply after sockclnt_delete, govpp confuses these messages: it sends the number of
// the reply instead of the number of the request (open in socketclient.Client). VPP then overlooks the end of
// the client if errno is EAGAIN at that time. After sixteen such clients, VPP hangs.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/geneve"
	"go.fd.io/govpp/binapi/gre"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/tunnel_types"
	"go.fd.io/govpp/binapi/vxlan"

	"longline.dev/agent/internal/vpp"
)

// timeout is the time after which a VPP that does not respond counts as absent.
const timeout = 3 * time.Second

const usage = `vpptestctl SOCKET show                    what is configured, as JSON
vpptestctl SOCKET add-sub PORT VLAN       a sub-interface for frames with this one 802.1Q tag
vpptestctl SOCKET delete-sub NAME         delete a sub-interface
vpptestctl SOCKET add-gre LOCAL REMOTE N  a tunnel for Ethernet over GRE between two addresses, which is called gre<N>
vpptestctl SOCKET delete-tunnel NAME      delete a tunnel
vpptestctl SOCKET untag NAME              take an interface's tag off
vpptestctl SOCKET up|down NAME            set an interface's admin state
vpptestctl SOCKET disconnect NAME         end the cross-connect out of an interface
vpptestctl SOCKET walk-slowly             search for fragments of incomplete packets once a second`

var errUsage = errors.New(usage)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "vpptestctl:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout io.Writer) error {
	if len(args) < 2 {
		return errUsage
	}
	do, err := command(args[1:], stdout)
	if err != nil {
		return err
	}
	ctx := context.Background()
	session, err := vpp.Dialer{Socket: args[0], Timeout: timeout}.Dial(ctx)
	if err != nil {
		return err
	}
	defer session.Close()
	return do(ctx, session)
}

// edits are the commands that change the interface that their only argument names.
var edits = map[string]change{
	"delete-sub": deleteSub, "untag": untag, "disconnect": disconnect,
	"up": setAdmin(interface_types.IF_STATUS_API_FLAG_ADMIN_UP), "down": setAdmin(0),
}

func command(args []string, stdout io.Writer) (do func(context.Context, *vpp.Session) error, err error) {
	switch command, n := args[0], len(args)-1; {
	case n == 0 && command == "show":
		return func(ctx context.Context, session *vpp.Session) error {
			shown, err := show(ctx, session)
			if err != nil {
				return err
			}
			return json.NewEncoder(stdout).Encode(shown)
		}, nil
	case n == 0 && command == "walk-slowly":
		return walkSlowly, nil
	case n == 1 && command == "delete-tunnel":
		return func(ctx context.Context, session *vpp.Session) error { return deleteTunnel(ctx, session, args[1]) }, nil
	case n == 1 && edits[command] != nil:
		return edit(args[1], edits[command]), nil
	case n == 2 && command == "add-sub":
		vlan, err := strconv.ParseUint(args[2], 10, 12)
		return edit(args[1], addSub(uint16(vlan))), err
	case n == 3 && command == "add-gre":
		request, err := addGRE(args[1], args[2], args[3])
		return func(ctx context.Context, session *vpp.Session) error {
			_, err := called(ctx, session, request)
			return err
		}, err
	}
	return nil, errUsage
}

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
