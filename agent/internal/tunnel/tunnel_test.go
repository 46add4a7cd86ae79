package tunnel

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/geneve"
	"go.fd.io/govpp/binapi/gre"
	"go.fd.io/govpp/binapi/tunnel_types"
	"go.fd.io/govpp/binapi/vxlan"

	"longline.dev/agent/internal/vpp"
)

var (
	local4, remote4 = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	local6, remote6 = netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
)

// withoutMessages is a VPP that has all messages except those with these names.
func withoutMessages(names ...string) Has {
	return func(m api.Message) bool { return !slices.Contains(names, m.GetMessageName()) }
}

// TestVPPListsATunnelAsItWasCreated copies the fields of each message that creates a tunnel into VPP's details,
// and reads them back.
func TestVPPListsATunnelAsItWasCreated(t *testing.T) {
	for _, wanted := range []Tunnel{
		{Encapsulation: VXLAN, Local: local4, Remote: remote4, VNI: 7},
		{Encapsulation: VXLAN, Local: local6, Remote: remote6, VNI: 7, Table: 3},
		{Encapsulation: GENEVE, Local: local4, Remote: remote4, VNI: 7, Table: 3},
		{Encapsulation: GRE, Local: local6, Remote: remote6, Table: 3},
		{Encapsulation: GRE, Local: local4, Remote: remote4, GREKey: 9},
	} {
		t.Run(fmt.Sprintf("%s %s key %d", wanted.Encapsulation, wanted.Local, wanted.GREKey), func(t *testing.T) {
			var details, reply api.Message
			switch m := Of(wanted.Encapsulation).AddDel(wanted, true).(type) {
			case *vxlan.VxlanAddDelTunnelV3:
				details = &vxlan.VxlanTunnelV2Details{SwIfIndex: 5, SrcAddress: m.SrcAddress, DstAddress: m.DstAddress, Vni: m.Vni, EncapVrfID: m.EncapVrfID, DstPort: 4789}
				reply = &vxlan.VxlanAddDelTunnelV3Reply{SwIfIndex: 5}
			case *geneve.GeneveAddDelTunnel2:
				details = &geneve.GeneveTunnelDetails{SwIfIndex: 5, SrcAddress: m.LocalAddress, DstAddress: m.RemoteAddress, Vni: m.Vni, EncapVrfID: m.EncapVrfID}
				reply = &geneve.GeneveAddDelTunnel2Reply{SwIfIndex: 5}
			case *gre.GreTunnelAddDel:
				m.Tunnel.SwIfIndex = 5
				details, reply = &gre.GreTunnelDetails{Tunnel: m.Tunnel}, &gre.GreTunnelAddDelReply{SwIfIndex: 5}
			case *gre.GreTunnelAddDelV2:
				m.Tunnel.SwIfIndex = 5
				details, reply = &gre.GreTunnelDetailsV2{Tunnel: m.Tunnel}, &gre.GreTunnelAddDelV2Reply{SwIfIndex: 5}
			}
			if want := (&Found{Tunnel: wanted, Index: 5, Default: true}); !reflect.DeepEqual(FoundIn(details), want) {
				t.Errorf("found %+v, want %+v", FoundIn(details), want)
			}
			if index, ok := vpp.CreatedInterface(reply); !ok || index != 5 {
				t.Errorf("made %d, %v", index, ok)
			}
		})
	}
}

func TestTunnelsOfOthersAreNotDefault(t *testing.T) {
	for name, details := range map[string]api.Message{
		"VXLAN with another port":      &vxlan.VxlanTunnelV2Details{DstPort: 8472},
		"GENEVE over IPv6 in a table":  &geneve.GeneveTunnelDetails{SrcAddress: vpp.IPAddress(local6), DstAddress: vpp.IPAddress(remote6), EncapVrfID: 3},
		"GRE with more than two peers": &gre.GreTunnelDetailsV2{Tunnel: gre.GreTunnelV2{Type: gre.GRE_API_TUNNEL_TYPE_TEB, Mode: tunnel_types.TUNNEL_API_MODE_MP}},
	} {
		if found := FoundIn(details); found == nil || found.Default {
			t.Errorf("%s: found %+v", name, found)
		}
	}
	if found := FoundIn(&gre.GreTunnelDetails{Tunnel: gre.GreTunnel{Type: gre.GRE_API_TUNNEL_TYPE_L3}}); found != nil {
		t.Errorf("GRE that carries IP packets: found %+v", found)
	}
}

func TestATunnelIsListedByTheMessagesThatVPPHas(t *testing.T) {
	for name, c := range map[string]struct {
		has  Has
		want []string
	}{
		"all messages": {withoutMessages(), []string{"vxlan_tunnel_v2_dump", "geneve_tunnel_dump", "gre_tunnel_dump_v2"}},
		"no GENEVE":    {withoutMessages("geneve_tunnel_dump"), []string{"vxlan_tunnel_v2_dump", "gre_tunnel_dump_v2"}},
		// Such a VPP cannot have tunnels with keys.
		"no GRE keys": {withoutMessages("gre_tunnel_add_del_v2"), []string{"vxlan_tunnel_v2_dump", "geneve_tunnel_dump", "gre_tunnel_dump"}},
	} {
		var names []string
		for _, dump := range Dumps(c.has, 0) {
			names = append(names, dump.GetMessageName())
		}
		if !slices.Equal(names, c.want) {
			t.Errorf("%s: %v, want %v", name, names, c.want)
		}
	}
}

func TestATunnelThatVPPCannotHaveIsRefusedWithAReason(t *testing.T) {
	key := Tunnel{Encapsulation: GRE, Local: local4, Remote: remote4, GREKey: 9}
	table := Tunnel{Encapsulation: GENEVE, Local: local6, Remote: remote6, Table: 3}
	if why := Of(GRE).Refuses(key, false); why == "" {
		t.Error("a GRE key is accepted without its messages")
	}
	if why := Of(GRE).Refuses(key, true); why != "" {
		t.Error(why)
	}
	if why := Of(GENEVE).Refuses(table, true); why == "" {
		t.Error("GENEVE over IPv6 in a table is accepted")
	}
}

func TestOnlyAGENEVEKeyIsTakenByATunnelThatIsNotDefault(t *testing.T) {
	for encapsulation, want := range map[Encapsulation]bool{VXLAN: false, GENEVE: true, GRE: false} {
		found := Found{Tunnel: Tunnel{Encapsulation: encapsulation}}
		if found.TakesKey() != want {
			t.Errorf("%s: %v", encapsulation, found.TakesKey())
		}
	}
}
