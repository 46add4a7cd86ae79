package calibration

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/pg"
	"go.fd.io/govpp/binapi/vlib"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/tunnel"
	"longline.dev/agent/internal/vpp"
)

// These names and numbers are reserved for the agent. The numbers of the generators follow the
// number of the generator for activation tests. The tunnels are in a separate table without other
// addresses and routes, and use documentation addresses (RFC 5737, RFC 3849).
const (
	mark       = "longline:calibration"
	streamName = "longline-clocks"
	tableID    = 0x4c4c0001
	vni        = 0x4c4c4c
	greKey     = 0x4c4c4c
	none       = ^uint32(0)
	// generators is the common prefix of the three names.
	generators = "pg12800491"
)

// source sends the frames. port simulates the other port of a cross-connect, and underlay the link of the
// tunnels. Both discard the frames that they receive.
var (
	source   = generator{0x4c4c0001, "pg1280049153"}
	port     = generator{0x4c4c0002, "pg1280049154"}
	underlay = generator{0x4c4c0003, "pg1280049155"}
	all      = []generator{source, port, underlay}
)

// Interfaces is the number of temporary interfaces: the three generators, and a tunnel for each
// transport that uses a tunnel.
const Interfaces = 3 + 6

type generator struct {
	id   interface_types.InterfaceIndex
	name string
}

var (
	near = map[int]netip.Prefix{4: netip.MustParsePrefix("192.0.2.1/24"), 6: netip.MustParsePrefix("2001:db8::1/64")}
	far  = map[int]netip.Addr{4: netip.MustParseAddr("192.0.2.2"), 6: netip.MustParseAddr("2001:db8::2")}
)

// farMAC is locally administered.
var farMAC = ethernet_types.MacAddress{0x02, 0x4c, 0x4c, 0, 0, 0x02}

// needed lists the messages that every calibration needs.
var needed = []api.Message{
	&vlib.CliInband{}, &pg.PgCreateInterfaceV3{}, &pg.PgDeleteInterface{}, &ip.IPTableAddDel{}, &ip.IPTableDump{},
	&interfaces.SwInterfaceSetTable{}, &interfaces.SwInterfaceAddDelAddress{}, &ip_neighbor.IPNeighborAddDel{}, &l2.SwInterfaceSetL2Xconnect{},
}

type loop struct {
	session                vpp.Reader
	source, port, underlay interface_types.InterfaceIndex
	tunnels                map[Transport]interface_types.InterfaceIndex
	connected              interface_types.InterfaceIndex // to the source; 0 for none
}

// build creates the loop, with the tunnels for which this VPP has messages.
func build(ctx context.Context, session vpp.Reader) (*loop, error) {
	l := &loop{session: session, tunnels: make(map[Transport]interface_types.InterfaceIndex)}
	for _, each := range []struct {
		generator
		index *interface_types.InterfaceIndex
	}{{source, &l.source}, {port, &l.port}, {underlay, &l.underlay}} {
		reply, err := vpp.Do(ctx, session, &pg.PgCreateInterfaceV3{InterfaceID: each.id})
		if err != nil {
			return nil, err
		}
		*each.index = reply.(*pg.PgCreateInterfaceV3Reply).SwIfIndex
		if err := l.mark(ctx, *each.index); err != nil {
			return nil, err
		}
	}
	for _, isIPv6 := range []bool{false, true} {
		table := ip.IPTable{TableID: tableID, IsIP6: isIPv6, Name: mark}
		if _, err := vpp.Do(ctx, session, &ip.IPTableAddDel{IsAdd: true, Table: table}); err != nil {
			return nil, err
		}
		if _, err := vpp.Do(ctx, session, &interfaces.SwInterfaceSetTable{SwIfIndex: l.underlay, IsIPv6: isIPv6, VrfID: tableID}); err != nil {
			return nil, err
		}
	}
	for family := range near {
		if _, err := vpp.Do(ctx, session, &interfaces.SwInterfaceAddDelAddress{SwIfIndex: l.underlay, IsAdd: true, Prefix: address(family)}); err != nil {
			return nil, err
		}
		if _, err := vpp.Do(ctx, session, &ip_neighbor.IPNeighborAddDel{IsAdd: true, Neighbor: neighbor(l.underlay, family)}); err != nil {
			return nil, err
		}
	}
	for _, transport := range Transports {
		if transport == L2XC || Lacks(transport, session.Has) != "" {
			continue
		}
		index, err := makeTunnel(ctx, session, transport)
		if err != nil {
			return nil, err
		}
		l.tunnels[transport] = index
		if err := l.mark(ctx, index); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// address returns the underlay's own address.
func address(family int) ip_types.AddressWithPrefix {
	return ip_types.AddressWithPrefix{Address: vpp.IPAddress(near[family].Addr()), Len: uint8(near[family].Bits())}
}

// neighbor returns the destination of the underlay's frames.
func neighbor(index interface_types.InterfaceIndex, family int) ip_neighbor.IPNeighbor {
	return ip_neighbor.IPNeighbor{
		SwIfIndex: index, Flags: ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC, MacAddress: farMAC, IPAddress: vpp.IPAddress(far[family]),
	}
}

// mark tags an interface as the agent's and sets it up.
func (l *loop) mark(ctx context.Context, index interface_types.InterfaceIndex) error {
	if _, err := vpp.Do(ctx, l.session, &interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: index, Tag: mark}); err != nil {
		return err
	}
	_, err := vpp.Do(ctx, l.session, &interfaces.SwInterfaceSetFlags{SwIfIndex: index, Flags: interface_types.IF_STATUS_API_FLAG_ADMIN_UP})
	return err
}

// connect cross-connects the source with that transport, in both directions as for a line.
func (l *loop) connect(ctx context.Context, transport Transport) error {
	if err := l.crossConnect(ctx, l.connected, false); err != nil {
		return err
	}
	out := l.port
	if transport != L2XC {
		out = l.tunnels[transport]
	}
	l.connected = out
	return l.crossConnect(ctx, out, true)
}

func (l *loop) crossConnect(ctx context.Context, out interface_types.InterfaceIndex, enable bool) error {
	if out == 0 {
		return nil
	}
	for _, way := range [][2]interface_types.InterfaceIndex{{l.source, out}, {out, l.source}} {
		if _, err := vpp.Do(ctx, l.session, &l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: way[0], TxSwIfIndex: way[1], Enable: enable}); err != nil {
			return err
		}
	}
	return nil
}

// sink returns the generator that receives the frames of a transport.
func sink(transport Transport) generator {
	if transport == L2XC {
		return port
	}
	return underlay
}

// Tidy deletes all objects of a calibration that exist, and nothing else. Call it after a calibration and
// on a new connection, because an earlier calibration may have been interrupted. The generators are created
// first and deleted last, so without a generator there is nothing to delete. Tidy returns *CannotError if
// another user has one of the names, *vpp.RefusedError, or an error of the connection.
func Tidy(ctx context.Context, session vpp.Reader) error {
	if vpp.Missing(session.Has, needed...) != "" {
		return nil // without these messages, no calibration could start
	}
	found, err := find(ctx, session)
	if err != nil || len(found) == 0 {
		return err
	}
	// The stream must be deleted before its generator: a stream without a generator is not safe. If
	// the stream does not exist, VPP replies that there is no such stream and does nothing.
	if _, _, err := vpp.RunCLI(ctx, session, "packet-generator delete "+streamName); err != nil {
		return err
	}
	tables, err := ownTables(ctx, session)
	if err != nil {
		return err
	}
	if len(tables) > 0 {
		tunnels, err := ownTunnels(ctx, session)
		if err != nil {
			return err
		}
		for _, each := range tunnels {
			if err := deleteTunnel(ctx, session, each); err != nil {
				return err
			}
		}
	}
	for _, each := range slices.Backward(all) {
		index, exists := found[each.name]
		if !exists {
			continue
		}
		if each == underlay { // it has the routes of the table
			if err := leaveTable(ctx, session, index, tables); err != nil {
				return err
			}
		}
		if _, err := vpp.Do(ctx, session, &pg.PgDeleteInterface{SwIfIndex: index}); err != nil {
			return err
		}
	}
	return nil
}

// leaveTable removes an interface from the agent's tables, and deletes the tables. Static neighbors
// would still exist after the deletion of the interface, so leaveTable deletes them too.
func leaveTable(ctx context.Context, session vpp.Reader, index interface_types.InterfaceIndex, tables []ip.IPTable) error {
	for family := range far {
		for _, undo := range []api.Message{
			&ip_neighbor.IPNeighborAddDel{Neighbor: neighbor(index, family)},
			&interfaces.SwInterfaceAddDelAddress{SwIfIndex: index, Prefix: address(family)},
		} {
			var refused *vpp.RefusedError
			if _, err := vpp.Do(ctx, session, undo); err != nil && !errors.As(err, &refused) { // refused if it was not created
				return err
			}
		}
	}
	for _, table := range tables {
		if _, err := vpp.Do(ctx, session, &interfaces.SwInterfaceSetTable{SwIfIndex: index, IsIPv6: table.IsIP6}); err != nil {
			return err
		}
		if _, err := vpp.Do(ctx, session, &ip.IPTableAddDel{Table: table}); err != nil {
			return err
		}
	}
	return nil
}

// find returns the agent's generators by name. A new generator may have no tag yet.
func find(ctx context.Context, session vpp.Reader) (map[string]interface_types.InterfaceIndex, error) {
	found := make(map[string]interface_types.InterfaceIndex)
	var foreign error
	named := &interfaces.SwInterfaceDump{SwIfIndex: interface_types.InterfaceIndex(none), NameFilterValid: true, NameFilter: generators}
	err := session.Dump(ctx, []api.Message{named}, func(msg api.Message) {
		m, ok := msg.(*interfaces.SwInterfaceDetails)
		if !ok || !slices.ContainsFunc(all, func(g generator) bool { return g.name == vpp.Text(m.InterfaceName) }) {
			return
		}
		if tag := vpp.Text(m.Tag); tag != "" && tag != mark {
			foreign = &CannotError{fmt.Sprintf("another client has an interface %s, with the tag %q", vpp.Text(m.InterfaceName), tag)}
			return
		}
		found[vpp.Text(m.InterfaceName)] = m.SwIfIndex
	})
	if err != nil {
		return nil, fmt.Errorf("find generators: %w", err)
	}
	return found, foreign
}

// ownTables returns the agent's tables. They have the constant mark as their name.
func ownTables(ctx context.Context, session vpp.Reader) ([]ip.IPTable, error) {
	var own []ip.IPTable
	var foreign error
	err := session.Dump(ctx, []api.Message{&ip.IPTableDump{}}, func(msg api.Message) {
		m, ok := msg.(*ip.IPTableDetails)
		if !ok || m.Table.TableID != tableID {
			return
		}
		if name := vpp.Text(m.Table.Name); name != mark {
			foreign = &CannotError{fmt.Sprintf("another client has the table %d, with the name %q", m.Table.TableID, name)}
			return
		}
		own = append(own, m.Table)
	})
	if err != nil {
		return nil, fmt.Errorf("find tables: %w", err)
	}
	return own, foreign
}

// Lacks returns the name of the message that a VPP lacks for a transport, or "".
func Lacks(transport Transport, has func(api.Message) bool) string {
	if transport == L2XC {
		return ""
	}
	return vpp.Missing(has, tunnel.Of(transport.encapsulation()).Needs...)
}

// tunnelOf returns the tunnel of a transport in the agent's table. As for a line, a GRE tunnel has
// a key if this VPP supports keys.
func tunnelOf(transport Transport, has func(api.Message) bool) intent.Tunnel {
	t := intent.Tunnel{
		Encapsulation: transport.encapsulation(), Local: near[transport.family()].Addr(), Remote: far[transport.family()], Table: tableID,
	}
	switch kind := t.Kind(); {
	case kind.HasVNI:
		t.VNI = vni
	case kind.HasGREKey && tunnel.GREKeys(has):
		t.GREKey = greKey
	}
	return t
}

// makeTunnel creates the tunnel of a transport in the agent's table.
func makeTunnel(ctx context.Context, session vpp.Reader, transport Transport) (interface_types.InterfaceIndex, error) {
	wanted := tunnelOf(transport, session.Has)
	kind := wanted.Kind()
	if !kind.TableByCLI {
		reply, err := vpp.Do(ctx, session, kind.AddDel(wanted, true))
		if err != nil {
			return 0, err
		}
		index, _ := vpp.CreatedInterface(reply)
		return index, nil
	}
	line := kind.CLI(wanted, "")
	text, _, err := vpp.RunCLI(ctx, session, line)
	if err != nil {
		return 0, err
	}
	name := strings.TrimSpace(text)
	index := interface_types.InterfaceIndex(none)
	named := &interfaces.SwInterfaceDump{SwIfIndex: index, NameFilterValid: true, NameFilter: kind.NamePrefix}
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

func deleteTunnel(ctx context.Context, session vpp.Reader, t intent.Tunnel) error {
	if kind := t.Kind(); kind.TableByCLI {
		return vpp.Order(ctx, session, kind.CLI(t, " del"))
	}
	_, err := vpp.Do(ctx, session, t.Kind().AddDel(t, false))
	return err
}

// ownTunnels returns the existing tunnels in the agent's table. Only the agent has tunnels in this table.
func ownTunnels(ctx context.Context, session vpp.Reader) (existing []intent.Tunnel, err error) {
	err = session.Dump(ctx, tunnel.Dumps(session.Has, interface_types.InterfaceIndex(none)), func(msg api.Message) {
		if found := tunnel.FoundIn(msg); found != nil && found.Table == tableID {
			existing = append(existing, found.Tunnel)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("find tunnels: %w", err)
	}
	return existing, nil
}
