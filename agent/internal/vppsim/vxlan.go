package vppsim

import (
	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/vxlan"
)

const (
	vxlanPort       = 4789
	vxlanDecapL2    = 1 // VXLAN_INPUT_NEXT_L2_INPUT
	vxlanDecapNexts = 2
)

func vxlanOperations() []operation {
	return []operation{
		on((*vpp).vxlanAddDel, &vxlan.VxlanAddDelTunnelV3Reply{}),
		on((*vpp).vxlanDump, &vxlan.VxlanTunnelV2Details{}),
	}
}

func (v *vpp) vxlanAddDel(c *call, m *vxlan.VxlanAddDelTunnelV3) {
	index, retval := v.vxlanTunnel(m)
	c.reply(&vxlan.VxlanAddDelTunnelV3Reply{Retval: retval, SwIfIndex: interface_types.InterfaceIndex(index)})
}

func (v *vpp) vxlanTunnel(m *vxlan.VxlanAddDelTunnelV3) (uint32, int32) {
	src, dst := netipAddr(m.SrcAddress), netipAddr(m.DstAddress)
	switch {
	case !v.knows(m.EncapVrfID, dst.Is6()):
		return none, retvalNoSuchFib
	case src.Is6() != dst.Is6():
		return none, retvalInvalidValue
	case src == dst:
		return none, retvalSameEndpoints
	}
	port := m.SrcPort
	if port == 0 {
		port = vxlanPort
	}
	t := &tunnel{
		key:   tunnelKey{src: src, dst: dst, vni: m.Vni & vniMask, port: port, table: m.EncapVrfID},
		local: m.SrcAddress, remote: m.DstAddress, vni: m.Vni, table: m.EncapVrfID, decapNext: m.DecapNextIndex, request: m,
	}
	if src.Is6() {
		t.key.src = dst // the key of an IPv6 tunnel does not contain the source
	}
	found := v.vxlans.byKey[t.key]
	if !m.IsAdd {
		if found == nil {
			return none, retvalNoSuchEntry
		}
		v.removeTunnel(&v.vxlans, found)
		return found.index, 0
	}
	if t.decapNext == none {
		t.decapNext = vxlanDecapL2
	}
	if found != nil {
		return none, retvalTunnelExists
	}
	if t.decapNext >= vxlanDecapNexts {
		return none, retvalDecapNext
	}
	retval := v.addTunnel(&v.vxlans, t, m.Instance, &iface{
		name: "vxlan_tunnel%d", device: "VXLAN", ethernet: true, mac: ethernet_types.MacAddress{2, 0xfe},
		mtu: [4]uint32{defaultMTU}, linkMTU: defaultMTU, carrier: true,
	})
	if retval != 0 {
		return none, retval
	}
	v.setAdmin(v.interfaces[t.index], true)
	return t.index, 0
}

func (v *vpp) vxlanDump(c *call, m *vxlan.VxlanTunnelV2Dump) {
	v.vxlans.each(m.SwIfIndex, func(t *tunnel) {
		made := t.request.(*vxlan.VxlanAddDelTunnelV3)
		dstPort := made.DstPort
		if dstPort == 0 {
			dstPort = vxlanPort
		}
		c.reply(&vxlan.VxlanTunnelV2Details{
			SwIfIndex: interface_types.InterfaceIndex(t.index), Instance: t.instance,
			SrcAddress: t.local, DstAddress: t.remote, SrcPort: t.key.port, DstPort: dstPort,
			McastSwIfIndex: made.McastSwIfIndex, EncapVrfID: t.table, DecapNextIndex: t.decapNext, Vni: t.vni,
		})
	})
}
