package main

import (
	"io"
	"net/netip"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/geneve"
	"go.fd.io/govpp/binapi/vxlan"

	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/vpp"
	"longline.dev/agent/internal/vppsim"
)

func TestVpptestctlDeletesTunnelsOfEachKind(t *testing.T) {
	t.Run("vppsim", func(t *testing.T) {
		sim, err := vppsim.Start(t.Context(), vppsim.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(sim.Stop)
		deletesTunnels(t, sim.APISocket())
	})
	t.Run("real VPP", func(t *testing.T) {
		deletesTunnels(t, realvpp.StartOrSkip(t, realvpp.Options{Plugins: []string{"vxlan", "geneve", "gre"}}).APISocket())
	})
}

func deletesTunnels(t *testing.T, socket string) {
	t.Helper()
	session, err := vpp.Dialer{Socket: socket, Timeout: realvpp.ReplyTimeout}.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	local, remote := vpp.IPAddress(netip.MustParseAddr("192.0.2.1")), vpp.IPAddress(netip.MustParseAddr("192.0.2.2"))
	for _, request := range []api.Message{
		&vxlan.VxlanAddDelTunnelV3{
			IsAdd: true, Instance: 7, SrcAddress: local, DstAddress: remote, SrcPort: 4789, DstPort: 4789, DecapNextIndex: uint32(every),
			Vni: 7, McastSwIfIndex: every,
		},
		&geneve.GeneveAddDelTunnel2{
			IsAdd: true, LocalAddress: local, RemoteAddress: remote, DecapNextIndex: uint32(every), Vni: 7, McastSwIfIndex: every,
		},
	} {
		if _, err := called(t.Context(), session, request); err != nil {
			t.Fatal(request.GetMessageName(), err)
		}
	}
	for _, add := range [][]string{{"add-gre", "192.0.2.1", "192.0.2.2", "7"}, {"add-gre", "2001:db8::1", "2001:db8::2", "8"}} {
		if err := run(append([]string{socket}, add...), io.Discard); err != nil {
			t.Fatal(add, err)
		}
	}
	is, err := show(t.Context(), session)
	if err != nil || len(is.Tunnels) != 4 {
		t.Fatalf("there are the tunnels %+v (%v), want four", is.Tunnels, err)
	}
	for _, tunnel := range is.Tunnels {
		for _, each := range is.Interfaces {
			if each.Index != tunnel.Index {
				continue
			}
			if err := run([]string{socket, "delete-tunnel", each.Name}, io.Discard); err != nil {
				t.Error(each.Name, err)
			}
		}
	}
	if is, err := show(t.Context(), session); err != nil || len(is.Tunnels) != 0 {
		t.Errorf("left are the tunnels %+v (%v)", is.Tunnels, err)
	}
	if err := run([]string{socket, "delete-tunnel", "vxlan_tunnel7"}, io.Discard); err == nil {
		t.Error("a tunnel that is not there was deleted")
	}
}
