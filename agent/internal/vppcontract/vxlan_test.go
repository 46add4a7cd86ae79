package vppcontract

import (
	"testing"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/vxlan"
)

const (
	tunnelExists  = -75
	noSuchEntry   = -6
	sameEndpoints = -82
)

func vxlanTunnel(src, dst string, vni uint32) *vxlan.VxlanAddDelTunnelV3 {
	return &vxlan.VxlanAddDelTunnelV3{IsAdd: true, Instance: none, SrcAddress: address(src), DstAddress: address(dst),
		McastSwIfIndex: anyIndex, DecapNextIndex: none, Vni: vni}
}

func vxlanDelete(src, dst string, vni uint32) *vxlan.VxlanAddDelTunnelV3 {
	request := vxlanTunnel(src, dst, vni)
	request.IsAdd = false
	return request
}

func (d *device) vxlan(src, dst string, vni uint32) index {
	d.Helper()
	return do(d, vxlanTunnel(src, dst, vni), &vxlan.VxlanAddDelTunnelV3Reply{}).SwIfIndex
}

func (d *device) vxlans() []*vxlan.VxlanTunnelV2Details {
	d.Helper()
	return dump[*vxlan.VxlanTunnelV2Details](d, &vxlan.VxlanTunnelV2Dump{SwIfIndex: anyIndex})
}

func TestAVXLANTunnelIsUpWithMTU9000(t *testing.T) {
	both(t, func(d *device) {
		i := d.at(d.vxlan("10.0.0.1", "10.0.0.2", 70001))
		if i.InterfaceName != "vxlan_tunnel0" || i.InterfaceDevType != "VXLAN" {
			d.Errorf("name %q, device %q", i.InterfaceName, i.InterfaceDevType)
		}
		if i.Flags != up|linkUp || i.Mtu[0] != 9000 {
			d.Errorf("flags %v, mtu %v", i.Flags, i.Mtu)
		}
	})
}

func TestAVXLANTunnelIsReadBackAsItWasMade(t *testing.T) {
	for name, c := range map[string]struct{ src, dst string }{
		"IPv4": {"10.0.0.1", "10.0.0.2"}, "IPv6": {"fd00::1", "fd00::2"},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(d *device) {
				made := d.vxlan(c.src, c.dst, 70001)
				all := d.vxlans()
				if len(all) != 1 {
					d.Fatalf("%d tunnels", len(all))
				}
				got := all[0]
				if got.SwIfIndex != made || got.SrcAddress != address(c.src) || got.DstAddress != address(c.dst) || got.Vni != 70001 {
					d.Errorf("%+v", got)
				}
				if got.Instance != 0 || got.SrcPort != 4789 || got.DstPort != 4789 || got.DecapNextIndex != 1 || got.McastSwIfIndex != anyIndex {
					d.Errorf("instance %d, ports %d and %d, decap next %d, mcast %d",
						got.Instance, got.SrcPort, got.DstPort, got.DecapNextIndex, got.McastSwIfIndex)
				}
			})
		})
	}
}

func TestVXLANOverIPv4IsKeyedBySourceRemoteAndVNI(t *testing.T) {
	both(t, func(d *device) {
		d.vxlan("10.0.0.1", "10.0.0.2", 5)
		refused(d, vxlanTunnel("10.0.0.1", "10.0.0.2", 5), &vxlan.VxlanAddDelTunnelV3Reply{}, tunnelExists)
		d.vxlan("10.0.0.3", "10.0.0.2", 5)
		d.vxlan("10.0.0.1", "10.0.0.4", 5)
		d.vxlan("10.0.0.1", "10.0.0.2", 6)
	})
}

func TestVXLANOverIPv6IsKeyedByRemoteAndVNIAlone(t *testing.T) {
	both(t, func(d *device) {
		d.vxlan("fd00::1", "fd00::2", 5)
		refused(d, vxlanTunnel("fd00::3", "fd00::2", 5), &vxlan.VxlanAddDelTunnelV3Reply{}, tunnelExists)
		d.vxlan("fd00::1", "fd00::4", 5)
		d.vxlan("fd00::1", "fd00::2", 6)
	})
}

func TestADeletionWithAWrongSourceDeletesAForeignVXLANTunnelOverIPv6(t *testing.T) {
	both(t, func(d *device) {
		d.vxlan("fd00::1", "fd00::2", 5)
		do(d, vxlanDelete("fd00::3", "fd00::2", 5), &vxlan.VxlanAddDelTunnelV3Reply{})
		if left := d.vxlans(); len(left) != 0 {
			d.Errorf("%d tunnels are left", len(left))
		}
	})
}

func TestAVXLANVNIAbove24BitsAliases(t *testing.T) {
	both(t, func(d *device) {
		d.vxlan("10.0.0.1", "10.0.0.2", 5)
		refused(d, vxlanTunnel("10.0.0.1", "10.0.0.2", 1<<24+5), &vxlan.VxlanAddDelTunnelV3Reply{}, tunnelExists)
	})
}

func TestVXLANRefusals(t *testing.T) {
	both(t, func(d *device) {
		refused(d, vxlanDelete("10.0.0.1", "10.0.0.2", 5), &vxlan.VxlanAddDelTunnelV3Reply{}, noSuchEntry)
		refused(d, vxlanTunnel("10.0.0.1", "10.0.0.1", 5), &vxlan.VxlanAddDelTunnelV3Reply{}, sameEndpoints)
		refused(d, vxlanTunnel("10.0.0.1", "fd00::1", 5), &vxlan.VxlanAddDelTunnelV3Reply{}, -7)
		unknownTable := vxlanTunnel("10.0.0.1", "10.0.0.2", 5)
		unknownTable.EncapVrfID = 9
		refused(d, unknownTable, &vxlan.VxlanAddDelTunnelV3Reply{}, -3)
		unknownNext := vxlanTunnel("10.0.0.1", "10.0.0.2", 5)
		unknownNext.DecapNextIndex = 9999
		refused(d, unknownNext, &vxlan.VxlanAddDelTunnelV3Reply{}, -76)
	})
}

func TestAVXLANInstanceIsTakenOnce(t *testing.T) {
	both(t, func(d *device) {
		request := vxlanTunnel("10.0.0.1", "10.0.0.2", 5)
		request.Instance = 7
		do(d, request, &vxlan.VxlanAddDelTunnelV3Reply{})
		if d.interfaces()["vxlan_tunnel7"] == nil {
			d.Error("there is no vxlan_tunnel7")
		}
		request.Vni = 6
		refused(d, request, &vxlan.VxlanAddDelTunnelV3Reply{}, -147)
	})
}

func TestZeroForDecapNextMeansDrop(t *testing.T) {
	both(t, func(d *device) {
		request := vxlanTunnel("10.0.0.1", "10.0.0.2", 5)
		request.DecapNextIndex = 0
		do(d, request, &vxlan.VxlanAddDelTunnelV3Reply{})
		if next := d.vxlans()[0].DecapNextIndex; next != 0 {
			d.Errorf("decap next %d", next)
		}
	})
}

func TestADeletedVXLANTunnelFreesItsIndexNameAndTag(t *testing.T) {
	both(t, func(d *device) {
		first := d.vxlan("10.0.0.1", "10.0.0.2", 5)
		do(d, &interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: first, Tag: "mine"}, &interfaces.SwInterfaceTagAddDelReply{})
		do(d, vxlanDelete("10.0.0.1", "10.0.0.2", 5), &vxlan.VxlanAddDelTunnelV3Reply{})
		if got := d.interfaces(); len(got) != 1 {
			d.Errorf("%d interfaces are left", len(got))
		}
		again := d.at(d.vxlan("10.0.0.1", "10.0.0.2", 6))
		if again.SwIfIndex != first || again.InterfaceName != "vxlan_tunnel0" || again.Tag != "" || again.Flags != up|linkUp {
			d.Errorf("index %d, name %s, tag %q, flags %v", again.SwIfIndex, again.InterfaceName, again.Tag, again.Flags)
		}
	})
}

func TestADumpOfOneTunnelReturnsOnlyThat(t *testing.T) {
	both(t, func(d *device) {
		d.vxlan("10.0.0.1", "10.0.0.2", 5)
		second := d.vxlan("10.0.0.1", "10.0.0.2", 6)
		got := dump[*vxlan.VxlanTunnelV2Details](d, &vxlan.VxlanTunnelV2Dump{SwIfIndex: second})
		if len(got) != 1 || got[0].Vni != 6 {
			d.Errorf("%+v", got)
		}
		if got := dump[*vxlan.VxlanTunnelV2Details](d, &vxlan.VxlanTunnelV2Dump{SwIfIndex: 77}); len(got) != 0 {
			d.Errorf("an unknown index has %+v", got)
		}
	})
}
