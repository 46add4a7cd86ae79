package vppcontract

import (
	"testing"

	"go.fd.io/govpp/binapi/geneve"
	interfaces "go.fd.io/govpp/binapi/interface"
)

func geneveTunnel(local, remote string, vni uint32) *geneve.GeneveAddDelTunnel2 {
	return &geneve.GeneveAddDelTunnel2{IsAdd: true, LocalAddress: address(local), RemoteAddress: address(remote),
		McastSwIfIndex: anyIndex, DecapNextIndex: none, Vni: vni}
}

func geneveDelete(local, remote string, vni uint32) *geneve.GeneveAddDelTunnel2 {
	request := geneveTunnel(local, remote, vni)
	request.IsAdd = false
	return request
}

func (d *device) geneve(local, remote string, vni uint32) index {
	d.Helper()
	return do(d, geneveTunnel(local, remote, vni), &geneve.GeneveAddDelTunnel2Reply{}).SwIfIndex
}

func (d *device) geneves() []*geneve.GeneveTunnelDetails {
	d.Helper()
	return dump[*geneve.GeneveTunnelDetails](d, &geneve.GeneveTunnelDump{SwIfIndex: anyIndex})
}

func TestAGENEVETunnelIsUpWithNoMTU(t *testing.T) {
	both(t, func(d *device) {
		i := d.at(d.geneve("10.0.0.1", "10.0.0.2", 70001))
		if i.InterfaceName != "geneve_tunnel0" || i.InterfaceDevType != "GENEVE" {
			d.Errorf("name %q, device %q", i.InterfaceName, i.InterfaceDevType)
		}
		if i.Flags != up|linkUp || i.Mtu[0] != 0 {
			d.Errorf("flags %v, mtu %v", i.Flags, i.Mtu)
		}
	})
}

func TestAGENEVETunnelIsReadBackAsItWasMade(t *testing.T) {
	for name, c := range map[string]struct{ local, remote string }{
		"IPv4": {"10.0.0.1", "10.0.0.2"}, "IPv6": {"fd00::1", "fd00::2"},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(d *device) {
				made := d.geneve(c.local, c.remote, 70001)
				all := d.geneves()
				if len(all) != 1 {
					d.Fatalf("%d tunnels", len(all))
				}
				got := all[0]
				if got.SwIfIndex != made || got.SrcAddress != address(c.local) || got.DstAddress != address(c.remote) ||
					got.Vni != 70001 || got.DecapNextIndex != 1 {
					d.Errorf("%+v", got)
				}
			})
		})
	}
}

func TestGENEVEIsKeyedByRemoteAndVNIAlone(t *testing.T) {
	for name, c := range map[string]struct{ local, otherLocal, remote string }{
		"IPv4": {"10.0.0.1", "10.0.0.3", "10.0.0.2"}, "IPv6": {"fd00::1", "fd00::3", "fd00::2"},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(d *device) {
				d.geneve(c.local, c.remote, 5)
				refused(d, geneveTunnel(c.otherLocal, c.remote, 5), &geneve.GeneveAddDelTunnel2Reply{}, tunnelExists)
				d.geneve(c.local, c.remote, 6)
				do(d, geneveDelete(c.otherLocal, c.remote, 5), &geneve.GeneveAddDelTunnel2Reply{})
				if left := d.geneves(); len(left) != 1 || left[0].Vni != 6 {
					d.Errorf("left are %+v", left)
				}
			})
		})
	}
}

func TestAGENEVEVNIAbove24BitsAliases(t *testing.T) {
	both(t, func(d *device) {
		d.geneve("10.0.0.1", "10.0.0.2", 5)
		refused(d, geneveTunnel("10.0.0.1", "10.0.0.2", 1<<24+5), &geneve.GeneveAddDelTunnel2Reply{}, tunnelExists)
	})
}

func TestGENEVERefusals(t *testing.T) {
	both(t, func(d *device) {
		refused(d, geneveDelete("10.0.0.1", "10.0.0.2", 5), &geneve.GeneveAddDelTunnel2Reply{}, noSuchEntry)
		refused(d, geneveTunnel("10.0.0.1", "10.0.0.1", 5), &geneve.GeneveAddDelTunnel2Reply{}, sameEndpoints)
		unknownTable := geneveTunnel("10.0.0.1", "10.0.0.2", 5)
		unknownTable.EncapVrfID = 9
		refused(d, unknownTable, &geneve.GeneveAddDelTunnel2Reply{}, -3)
		unknownNext := geneveTunnel("10.0.0.1", "10.0.0.2", 5)
		unknownNext.DecapNextIndex = 9999
		refused(d, unknownNext, &geneve.GeneveAddDelTunnel2Reply{}, -76)
	})
}

func TestADeletedGENEVETunnelFreesItsIndexNameAndTag(t *testing.T) {
	both(t, func(d *device) {
		first := d.geneve("10.0.0.1", "10.0.0.2", 5)
		do(d, &interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: first, Tag: "mine"}, &interfaces.SwInterfaceTagAddDelReply{})
		do(d, geneveDelete("10.0.0.1", "10.0.0.2", 5), &geneve.GeneveAddDelTunnel2Reply{})
		if got := d.interfaces(); len(got) != 1 {
			d.Errorf("%d interfaces are left", len(got))
		}
		again := d.at(d.geneve("10.0.0.1", "10.0.0.2", 6))
		if again.SwIfIndex != first || again.InterfaceName != "geneve_tunnel0" || again.Tag != "" {
			d.Errorf("index %d, name %s, tag %q", again.SwIfIndex, again.InterfaceName, again.Tag)
		}
	})
}

func TestATagRewriteOnAGENEVETunnelIsRefused(t *testing.T) {
	both(t, func(d *device) {
		refused(d, rewrite(d.geneve("10.0.0.1", "10.0.0.2", 5), pop1), rewriteReply(), -71)
	})
}
