package vppsim

import (
	"cmp"
	"fmt"
	"net/netip"

	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/geneve"
	"go.fd.io/govpp/binapi/gre"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/vxlan"
)

// vniMask selects the 24 bits of a VNI. VPP does not check the other bits of the number, so several
// numbers can mean the same VNI.
const vniMask = 1<<24 - 1

// The next nodes of the tunnels' input nodes. decapDrop drops all frames; it is also Go's zero value. decapL2
// is VXLAN_INPUT_NEXT_L2_INPUT and GENEVE_INPUT_NEXT_L2_INPUT.
const (
	decapDrop = 0
	decapL2   = 1
)

const vxlanPort = 4789

// tunnelKey is the key by which VPP finds a tunnel. Each encapsulation uses some of the fields.
type tunnelKey struct {
	src, dst netip.Addr
	vni      uint32
	port     uint16
	kind     uint8
	key      uint32
	table    uint32
}

type tunnel struct {
	of        *tunnels
	key       tunnelKey
	slot      uint32 // position in the pool; also the default instance
	instance  uint32
	local     ip_types.Address
	remote    ip_types.Address
	vni       uint32
	table     uint32 // the FIB table of the encapsulated packets
	decapNext uint32
	index     uint32 // sw_if_index
	request   any    // the request that created the tunnel; the dump returns its fields
}

// tunnels are the tunnels with one encapsulation.
type tunnels struct {
	encapsulation string
	overhead      int   // bytes that the encapsulation adds to a frame, without IP and the outer Ethernet header
	template      iface // a new tunnel's interface
	decapNexts    uint32
	exists        int32 // the return code if a tunnel with the same key exists
	up            bool  // a new tunnel is up
	// leavesL2First is true if VPP moves the tunnel to L3 before it deletes the interface. In this case, the
	// interface that is cross-connected with the tunnel stays connected in one direction.
	leavesL2First bool
	countsSent    bool // GRE tunnels for Ethernet (TEB) do not count the frames that they send

	pool      pool[tunnel]
	byKey     map[tunnelKey]*tunnel
	byIndex   map[uint32]*tunnel
	instances map[uint32]bool
}

func newTunnels(kind tunnels) *tunnels {
	kind.byKey, kind.byIndex, kind.instances = map[tunnelKey]*tunnel{}, map[uint32]*tunnel{}, map[uint32]bool{}
	return &kind
}

var (
	vxlanKind = tunnels{
		encapsulation: "vxlan", overhead: 16, decapNexts: 2, exists: retvalTunnelExists, up: true, countsSent: true,
		template: iface{
			name: "vxlan_tunnel%d", device: "VXLAN", ethernet: true, mac: ethernet_types.MacAddress{2, 0xfe},
			mtu: [4]uint32{defaultMTU}, linkMTU: defaultMTU, carrier: true,
		},
	}
	geneveKind = tunnels{
		encapsulation: "geneve", overhead: 16, decapNexts: 4, exists: retvalTunnelExists, up: true, countsSent: true, leavesL2First: true,
		template: iface{name: "geneve_tunnel%d", device: "GENEVE", carrier: true},
	}
	greKind = tunnels{
		encapsulation: "gre", overhead: 4, decapNexts: decapL2 + 1, exists: retvalInterfaceExists, leavesL2First: true,
		template: iface{
			name: "gre%d", device: "GRE tunnel device", mac: ethernet_types.MacAddress{2, 0xfe},
			mtu: [4]uint32{defaultMTU}, linkMTU: greLinkMTU, carrier: true,
		},
	}
)

// changeTunnel creates the tunnel with its interface, or deletes the tunnel with the same key. instance may be
// none: the instance is then the number of the tunnel's slot.
func (v *vpp) changeTunnel(t *tunnel, add bool, instance uint32, template iface) (interface_types.InterfaceIndex, int32) {
	ts := t.of
	existing := ts.byKey[t.key]
	t.slot, t.instance = ts.pool.next(), instance
	if instance == none {
		t.instance = t.slot
	}
	if t.decapNext == none {
		t.decapNext = decapL2
	}
	switch {
	case !add && existing == nil:
		return everyIndex, retvalNoSuchEntry
	case !add:
		v.removeTunnel(existing)
		return interface_types.InterfaceIndex(existing.index), 0
	case existing != nil:
		return everyIndex, ts.exists
	case t.decapNext >= ts.decapNexts:
		return everyIndex, retvalDecapNext
	case ts.instances[t.instance]:
		return everyIndex, retvalInstanceInUse
	}
	ts.pool.add(t)
	ts.byKey[t.key], ts.instances[t.instance] = t, true
	template.name = fmt.Sprintf(template.name, t.instance)
	i := v.insert(&template)
	t.index = i.index
	ts.byIndex[t.index] = t
	v.listenAtTunnels()
	if ts.up {
		v.setAdmin(i, true)
	}
	return interface_types.InterfaceIndex(t.index), 0
}

func (v *vpp) removeTunnel(t *tunnel) {
	delete(t.of.byKey, t.key)
	delete(t.of.byIndex, t.index)
	delete(t.of.instances, t.instance)
	t.of.pool.remove(t.slot)
	i := v.interfaces.at(t.index)
	v.setAdmin(i, false)
	if t.of.leavesL2First {
		v.leaveL2(i)
	}
	v.removeSubinterfaces(i)
	v.remove(i)
	v.listenAtTunnels()
}

// each calls the function visit with the tunnel that has this interface, or with every tunnel if index is
// everyIndex.
func (ts *tunnels) each(index interface_types.InterfaceIndex, visit func(*tunnel)) {
	if index != everyIndex {
		if t := ts.byIndex[uint32(index)]; t != nil {
			visit(t)
		}
		return
	}
	for _, t := range ts.pool.all() {
		visit(t)
	}
}

func (v *vpp) eachTunnel(visit func(*tunnel)) {
	for _, ts := range []*tunnels{v.vxlans, v.geneves, v.gres} {
		ts.each(everyIndex, visit)
	}
}

func (v *vpp) tunnelAt(index uint32) *tunnel {
	return cmp.Or(v.vxlans.byIndex[index], v.geneves.byIndex[index], v.gres.byIndex[index])
}

func (v *vpp) vxlanAddDel(m *vxlan.VxlanAddDelTunnelV3, reply *vxlan.VxlanAddDelTunnelV3Reply) {
	reply.SwIfIndex = everyIndex
	src, dst := netipAddr(m.SrcAddress), netipAddr(m.DstAddress)
	switch {
	case !v.knows(m.EncapVrfID, dst.Is6()):
		reply.Retval = retvalNoSuchFib
		return
	case src.Is6() != dst.Is6():
		reply.Retval = retvalInvalidValue
		return
	case src == dst:
		reply.Retval = retvalSameEndpoints
		return
	}
	t := &tunnel{
		of: v.vxlans, local: m.SrcAddress, remote: m.DstAddress, vni: m.Vni, table: m.EncapVrfID, decapNext: m.DecapNextIndex, request: m,
		key: tunnelKey{src: src, dst: dst, vni: m.Vni & vniMask, port: cmp.Or(m.SrcPort, vxlanPort), table: m.EncapVrfID},
	}
	if src.Is6() {
		t.key.src = dst // the key of an IPv6 tunnel does not contain the source
	}
	reply.SwIfIndex, reply.Retval = v.changeTunnel(t, m.IsAdd, m.Instance, v.vxlans.template)
}

func (v *vpp) vxlanDump(m *vxlan.VxlanTunnelV2Dump, send func(*vxlan.VxlanTunnelV2Details)) {
	v.vxlans.each(m.SwIfIndex, func(t *tunnel) {
		made := t.request.(*vxlan.VxlanAddDelTunnelV3)
		send(&vxlan.VxlanTunnelV2Details{
			SwIfIndex: interface_types.InterfaceIndex(t.index), Instance: t.instance,
			SrcAddress: t.local, DstAddress: t.remote, SrcPort: t.key.port, DstPort: cmp.Or(made.DstPort, vxlanPort),
			McastSwIfIndex: made.McastSwIfIndex, EncapVrfID: t.table, DecapNextIndex: t.decapNext, Vni: t.vni,
		})
	})
}

func (v *vpp) geneveAddDel(m *geneve.GeneveAddDelTunnel2, reply *geneve.GeneveAddDelTunnel2Reply) {
	reply.SwIfIndex = everyIndex
	local, remote := netipAddr(m.LocalAddress), netipAddr(m.RemoteAddress)
	switch {
	case !v.knows(m.EncapVrfID, remote.Is6()):
		reply.Retval = retvalNoSuchFib
		return
	case local == remote:
		reply.Retval = retvalSameEndpoints
		return
	}
	t := &tunnel{
		of: v.geneves, key: tunnelKey{dst: remote, vni: m.Vni & vniMask},
		local: m.LocalAddress, remote: m.RemoteAddress, vni: m.Vni, table: m.EncapVrfID, decapNext: m.DecapNextIndex, request: m,
	}
	reply.SwIfIndex, reply.Retval = v.changeTunnel(t, m.IsAdd, none, v.geneves.template)
}

func (v *vpp) geneveDump(m *geneve.GeneveTunnelDump, send func(*geneve.GeneveTunnelDetails)) {
	v.geneves.each(m.SwIfIndex, func(t *tunnel) {
		table := t.table
		if table != 0 && netipAddr(t.remote).Is6() {
			table = none // VPP looks for the table among the IPv4 tables, also for an IPv6 tunnel
		}
		send(&geneve.GeneveTunnelDetails{
			SwIfIndex: interface_types.InterfaceIndex(t.index), SrcAddress: t.local, DstAddress: t.remote,
			McastSwIfIndex: t.request.(*geneve.GeneveAddDelTunnel2).McastSwIfIndex, EncapVrfID: table, DecapNextIndex: t.decapNext, Vni: t.vni,
		})
	})
}

func (v *vpp) greAddDel(m *gre.GreTunnelAddDel, reply *gre.GreTunnelAddDelReply) {
	t := m.Tunnel
	reply.SwIfIndex, reply.Retval = v.changeGRE(m.IsAdd, gre.GreTunnelV2{
		Type: t.Type, Mode: t.Mode, Flags: t.Flags, SessionID: t.SessionID, Instance: t.Instance,
		OuterTableID: t.OuterTableID, Src: t.Src, Dst: t.Dst,
	})
}

func (v *vpp) greAddDelV2(m *gre.GreTunnelAddDelV2, reply *gre.GreTunnelAddDelV2Reply) {
	reply.SwIfIndex, reply.Retval = v.changeGRE(m.IsAdd, m.Tunnel)
}

func (v *vpp) changeGRE(add bool, m gre.GreTunnelV2) (interface_types.InterfaceIndex, int32) {
	src, dst := netipAddr(m.Src), netipAddr(m.Dst)
	switch {
	case src.Is6() != dst.Is6():
		return everyIndex, retvalInvalidProtocol
	case src == dst:
		return everyIndex, retvalSameEndpoints
	case m.Type > gre.GRE_API_TUNNEL_TYPE_ERSPAN:
		return everyIndex, retvalInvalidValue
	case !v.knows(m.OuterTableID, dst.Is6()):
		return everyIndex, retvalNoSuchFib
	}
	template := v.gres.template
	if template.ethernet = m.Type != gre.GRE_API_TUNNEL_TYPE_L3; !template.ethernet {
		template.mac = ethernet_types.MacAddress{}
	}
	return v.changeTunnel(&tunnel{
		of: v.gres, local: m.Src, remote: m.Dst, table: m.OuterTableID, decapNext: none, request: m,
		key: tunnelKey{src: src, dst: dst, kind: uint8(m.Type), port: m.SessionID, key: m.Key, table: m.OuterTableID},
	}, add, m.Instance, template)
}

func (v *vpp) greDump(m *gre.GreTunnelDump, send func(*gre.GreTunnelDetails)) {
	v.gres.each(m.SwIfIndex, func(t *tunnel) {
		d := t.greDetails()
		send(&gre.GreTunnelDetails{Tunnel: gre.GreTunnel{
			Type: d.Type, Mode: d.Mode, Flags: d.Flags, SessionID: d.SessionID, Instance: d.Instance,
			OuterTableID: d.OuterTableID, SwIfIndex: d.SwIfIndex, Src: d.Src, Dst: d.Dst,
		}})
	})
}

func (v *vpp) greDumpV2(m *gre.GreTunnelDumpV2, send func(*gre.GreTunnelDetailsV2)) {
	v.gres.each(m.SwIfIndex, func(t *tunnel) { send(&gre.GreTunnelDetailsV2{Tunnel: t.greDetails()}) })
}

func (t *tunnel) greDetails() gre.GreTunnelV2 {
	d := t.request.(gre.GreTunnelV2)
	d.Instance, d.SwIfIndex = t.instance, interface_types.InterfaceIndex(t.index)
	return d
}
