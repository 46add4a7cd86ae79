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
func makeTunnel(ctx context.Context, session Session, transport Transport) (interface_types.InterfaceIndex, error) {
	wanted := tunnelOf(transport, session.Has)
	kind := wanted.Kind()
	if !kind.TableByCLI {
		reply, err := vpp.Do(ctx, session, kind.AddDel(wanted, true))
		if err != nil {
			return 0, err
		}
		index, _ := tunnel.Made(reply)
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

// deleteTunnel deletes a tunnel in the agent's table.
func deleteTunnel(ctx context.Context, session Session, t intent.Tunnel) error {
	if kind := t.Kind(); kind.TableByCLI {
		return vpp.Order(ctx, session, kind.CLI(t, " del"))
	}
	_, err := vpp.Do(ctx, session, t.Kind().AddDel(t, false))
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
