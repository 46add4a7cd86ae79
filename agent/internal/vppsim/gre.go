package vppsim

import (
	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/gre"
	"go.fd.io/govpp/binapi/interface_types"
)

// greOperations handle GRE tunnels. The message table contains a reply to their dumps, but VPP 25.10
// never sends it. A client must send a control_ping after the dump.
func greOperations() []operation {
	return []operation{
		on((*vpp).greAddDel, &gre.GreTunnelAddDelReply{}),
		on((*vpp).greAddDelV2, &gre.GreTunnelAddDelV2Reply{}),
		on((*vpp).greDump, &gre.GreTunnelDetails{}, &gre.GreTunnelDumpReply{}),
		on((*vpp).greDumpV2, &gre.GreTunnelDetailsV2{}, &gre.GreTunnelDumpV2Reply{}),
	}
}

func (v *vpp) greAddDel(c *call, m *gre.GreTunnelAddDel) {
	t := m.Tunnel
	index, retval := v.greTunnel(m.IsAdd, gre.GreTunnelV2{
		Type: t.Type, Mode: t.Mode, Flags: t.Flags, SessionID: t.SessionID, Instance: t.Instance,
		OuterTableID: t.OuterTableID, Src: t.Src, Dst: t.Dst,
	})
	c.reply(&gre.GreTunnelAddDelReply{Retval: retval, SwIfIndex: interface_types.InterfaceIndex(index)})
}

func (v *vpp) greAddDelV2(c *call, m *gre.GreTunnelAddDelV2) {
	index, retval := v.greTunnel(m.IsAdd, m.Tunnel)
	c.reply(&gre.GreTunnelAddDelV2Reply{Retval: retval, SwIfIndex: interface_types.InterfaceIndex(index)})
}

func (v *vpp) greTunnel(add bool, m gre.GreTunnelV2) (uint32, int32) {
	src, dst := netipAddr(m.Src), netipAddr(m.Dst)
	switch {
	case src.Is6() != dst.Is6():
		return none, retvalInvalidProtocol
	case src == dst:
		return none, retvalSameEndpoints
	case m.Type > gre.GRE_API_TUNNEL_TYPE_ERSPAN:
		return none, retvalInvalidValue
	case !v.knows(m.OuterTableID, dst.Is6()):
		return none, retvalNoSuchFib
	}
	t := &tunnel{
		key:   tunnelKey{src: src, dst: dst, kind: uint8(m.Type), port: m.SessionID, key: m.Key, table: m.OuterTableID},
		local: m.Src, remote: m.Dst, table: m.OuterTableID, decapNext: none, request: m, leavesL2First: true,
	}
	found := v.gres.byKey[t.key]
	switch {
	case !add && found == nil:
		return none, retvalNoSuchEntry
	case !add:
		v.removeTunnel(&v.gres, found)
		return found.index, 0
	case found != nil:
		return none, retvalInterfaceExists
	}
	template := &iface{name: "gre%d", device: "GRE tunnel device", mtu: [4]uint32{defaultMTU}, linkMTU: greLinkMTU, carrier: true}
	if m.Type != gre.GRE_API_TUNNEL_TYPE_L3 {
		template.ethernet, template.mac = true, ethernet_types.MacAddress{2, 0xfe}
	}
	if retval := v.addTunnel(&v.gres, t, m.Instance, template); retval != 0 {
		return none, retval
	}
	return t.index, 0
}

func (v *vpp) greDump(c *call, m *gre.GreTunnelDump) {
	v.gres.each(m.SwIfIndex, func(t *tunnel) {
		d := t.greDetails()
		c.reply(&gre.GreTunnelDetails{Tunnel: gre.GreTunnel{
			Type: d.Type, Mode: d.Mode, Flags: d.Flags, SessionID: d.SessionID, Instance: d.Instance,
			OuterTableID: d.OuterTableID, SwIfIndex: d.SwIfIndex, Src: d.Src, Dst: d.Dst,
		}})
	})
}

func (v *vpp) greDumpV2(c *call, m *gre.GreTunnelDumpV2) {
	v.gres.each(m.SwIfIndex, func(t *tunnel) { c.reply(&gre.GreTunnelDetailsV2{Tunnel: t.greDetails()}) })
}

func (t *tunnel) greDetails() gre.GreTunnelV2 {
	d := t.request.(gre.GreTunnelV2)
	d.Instance, d.SwIfIndex = t.instance, interface_types.InterfaceIndex(t.index)
	return d
}
