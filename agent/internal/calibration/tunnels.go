package calibration

import (
	"context"
	"fmt"
	"strings"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/tunnel"
	"longline.dev/agent/internal/vpp"
)

// Lacks returns the name of the message that a VPP lacks for a transport, or "".
func Lacks(transport Transport, has func(api.Message) bool) string {
	if transport == L2XC {
		return ""
	}
	for _, message := range tunnel.Of(transport.encapsulation()).Needs() {
		if !has(message) {
			return message.GetMessageName()
		}
	}
	return ""
}

// tunnelOf returns the tunnel of a transport in the agent's table. As for a line, a GRE tunnel has
// a key if this VPP supports keys.
func tunnelOf(transport Transport, has func(api.Message) bool) intent.Tunnel {
	t := intent.Tunnel{
		Encapsulation: transport.encapsulation(), Local: near[transport.family()].Addr(), Remote: far[transport.family()], Table: tableID,
	}
	switch {
	case t.Encapsulation != intent.GRE:
		t.VNI = vni
	case tunnel.GREKeys(has):
		t.GREKey = greKey
	}
	return t
}

// byCLI reports whether the tunnel needs VPP's CLI. The binary API has an error with GENEVE over IPv6: it uses
// the number of the IPv4 table for the IPv6 table (plugins/geneve/geneve_api.c, 25.10). In a separate table,
// such a tunnel has no route, and VPP crashes later.
func byCLI(t intent.Tunnel) bool { return t.Encapsulation == intent.GENEVE }

// makeTunnel creates the tunnel of a transport in the agent's table.
func makeTunnel(ctx context.Context, session Session, transport Transport) (interface_types.InterfaceIndex, error) {
	wanted := tunnelOf(transport, session.Has)
	kind := tunnel.Of(wanted.Encapsulation)
	if !byCLI(wanted) {
		reply, err := vpp.Do(ctx, session, kind.AddDel(wanted, true))
		if err != nil {
			return 0, err
		}
		index, _ := kind.Made(reply)
		return index, nil
	}
	line := kind.CLI(wanted, "")
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

// deleteTunnel deletes a tunnel in the agent's table.
func deleteTunnel(ctx context.Context, session Session, t intent.Tunnel) error {
	kind := tunnel.Of(t.Encapsulation)
	if byCLI(t) {
		return vpp.Order(ctx, session, kind.CLI(t, " del"))
	}
	_, err := vpp.Do(ctx, session, kind.AddDel(t, false))
	return err
}

// ownTunnels returns the existing tunnels in the agent's table. Only the agent has tunnels in this table.
func ownTunnels(ctx context.Context, session Session) (existing []intent.Tunnel, err error) {
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
