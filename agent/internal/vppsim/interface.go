package vppsim

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strings"

	"go.fd.io/govpp/binapi/ethernet_types"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
)

const (
	none         = ^uint32(0)
	everyIndex   = interface_types.InterfaceIndex(none)
	defaultMTU   = 9000
	greLinkMTU   = 8998 // the value in VPP 25.10, which never changes
	maxTagLength = 63   // bytes; the field is a string[64] with a NUL
)

// iface is a software interface: a port, a loopback, a sub-interface or a tunnel.
type iface struct {
	index    uint32
	sup      uint32 // the index of the port for a sub-interface, otherwise the interface's own index
	name     string
	device   string
	tag      string
	mac      ethernet_types.MacAddress
	ethernet bool // VPP's hardware class of the interface is Ethernet, which is not the case for a GENEVE tunnel
	adminUp  bool
	linkUp   bool
	carrier  bool // the port's cable is plugged in, so the link comes up when the port is set up
	mtu      [4]uint32
	linkMTU  uint16
	sub      *subif
	l2       l2mode

	addresses  []ip_types.AddressWithPrefix
	ip6        bool      // IPv6 is enabled without an address
	tables     [2]uint32 // the FIB tables for IPv4 and IPv6
	unnumbered *iface    // the interface whose addresses it uses
	bond       *iface    // the bond that it is a member of
}

func (i *iface) isSub() bool { return i.sub != nil }

func interfaceOperations() []operation {
	return []operation{
		on((*vpp).interfaceDump, &interfaces.SwInterfaceDetails{}),
		on((*vpp).setFlags, &interfaces.SwInterfaceSetFlagsReply{}),
		on((*vpp).setMTU, &interfaces.SwInterfaceSetMtuReply{}),
		on((*vpp).setTag, &interfaces.SwInterfaceTagAddDelReply{}),
		on((*vpp).createLoopback, &interfaces.CreateLoopbackInstanceReply{}),
		on((*vpp).deleteLoopback, &interfaces.DeleteLoopbackReply{}),
	}
}

// insert adds an interface. It assigns an index and resets the counters of this index.
func (v *vpp) insert(i *iface) *iface {
	if n := len(v.freed); n > 0 {
		i.index, v.freed = v.freed[n-1], v.freed[:n-1]
	} else {
		i.index = uint32(len(v.interfaces))
		v.interfaces = append(v.interfaces, nil)
	}
	if !i.isSub() {
		i.sup = i.index
		v.vlans[untaggedKey(i.index)] = i.index
	}
	v.interfaces[i.index] = i
	v.segment.setInterface(i.index, i.name)
	v.announce(i, false)
	return i
}

// remove deletes the interface. If the interface is cross-connected, VPP takes the interface at the far end
// out of L2 (vnet/l2/l2_input.c: l2_input_interface_add_del). VPP finds the interface at the far end by its
// index, which may meanwhile belong to a different interface. If a third interface has a cross-connect to the
// deleted interface, the third interface stays connected to the freed index.
func (v *vpp) remove(i *iface) {
	if far := v.connected(i); far != nil {
		v.leaveL2(far)
	}
	if i.l2.kind != l3Mode {
		v.leaveL2(i)
	}
	v.release(i.index)
	v.announce(i, true)
}

// release frees the index. VPP assigns freed indices in reverse order, beginning with the index that was
// freed last.
func (v *vpp) release(index uint32) {
	v.interfaces[index] = nil
	delete(v.vlans, untaggedKey(index))
	delete(v.policers.applied, index)
	delete(v.classifiers.works, index)
	v.freed = append(v.freed, index)
	v.segment.deleteInterface(index)
}

func (v *vpp) at(index interface_types.InterfaceIndex) *iface {
	if uint64(index) < uint64(len(v.interfaces)) {
		return v.interfaces[index]
	}
	return nil
}

func (v *vpp) named(name string) *iface {
	for _, i := range v.interfaces {
		if i != nil && i.name == name {
			return i
		}
	}
	return nil
}

// link reports whether the link of the interface's port is up.
func (v *vpp) link(i *iface) bool { return v.interfaces[i.sup].linkUp }

func (v *vpp) flags(i *iface) interface_types.IfStatusFlags {
	var flags interface_types.IfStatusFlags
	if i.adminUp {
		flags |= interface_types.IF_STATUS_API_FLAG_ADMIN_UP
	}
	if v.link(i) {
		flags |= interface_types.IF_STATUS_API_FLAG_LINK_UP
	}
	return flags
}

func (v *vpp) interfaceDump(c *call, m *interfaces.SwInterfaceDump) {
	if !m.NameFilterValid && m.SwIfIndex != everyIndex && m.SwIfIndex != 0 {
		if i := v.at(m.SwIfIndex); i != nil {
			c.reply(v.details(i))
		}
		return
	}
	for _, i := range v.interfaces {
		switch {
		case i == nil:
		case m.NameFilterValid && !strings.Contains(strings.ToLower(i.name), strings.ToLower(m.NameFilter)):
		default:
			c.reply(v.details(i))
		}
	}
}

func (v *vpp) details(i *iface) *interfaces.SwInterfaceDetails {
	rewrite := v.rewrite(i)
	d := &interfaces.SwInterfaceDetails{
		SwIfIndex: interface_types.InterfaceIndex(i.index), SupSwIfIndex: i.sup,
		L2Address: i.mac, Flags: v.flags(i), LinkMtu: i.linkMTU, Mtu: i.mtu[:],
		InterfaceName: i.name, InterfaceDevType: i.device, Tag: i.tag,
		VtrOp: rewrite.op, VtrPushDot1q: rewrite.pushDot1q, VtrTag1: rewrite.tag1, VtrTag2: rewrite.tag2,
	}
	if i.isSub() {
		d.Type = interface_types.IF_API_TYPE_SUB
		d.SubID, d.SubIfFlags = i.sub.id, i.sub.flags&interface_types.SUB_IF_API_FLAG_MASK_VNET // the flag for "no tags" is not shown
		d.SubOuterVlanID, d.SubInnerVlanID = i.sub.outer, i.sub.inner
		d.SubNumberOfTags = i.sub.numberOfTags()
	}
	return d
}

// setFlags sets an interface up or down. It refuses to set a sub-interface up if its port is down. The
// link of a port follows the port's admin state.
func (v *vpp) setFlags(c *call, m *interfaces.SwInterfaceSetFlags) {
	up := m.Flags&interface_types.IF_STATUS_API_FLAG_ADMIN_UP != 0
	reply := &interfaces.SwInterfaceSetFlagsReply{}
	i := v.at(m.SwIfIndex)
	switch {
	case i == nil:
		reply.Retval = retvalInvalidInterface
	case i.isSub() && up && !v.interfaces[i.sup].adminUp:
		reply.Retval = retvalUnspecified
	default:
		v.setAdmin(i, up)
	}
	c.reply(reply)
}

func (v *vpp) setAdmin(i *iface, up bool) {
	if i.adminUp == up {
		return
	}
	i.adminUp = up
	switch {
	case i.isSub():
	case i.device == bondDevice: // the link of a bond does not depend on its members
		i.linkUp = up
	default:
		i.linkUp = up && i.carrier
	}
	v.announce(i, false)
}

func (v *vpp) setMTU(c *call, m *interfaces.SwInterfaceSetMtu) {
	reply := &interfaces.SwInterfaceSetMtuReply{}
	if i := v.at(m.SwIfIndex); i == nil {
		reply.Retval = retvalInvalidInterface
	} else {
		copy(i.mtu[:], m.Mtu)
	}
	c.reply(reply)
}

func (v *vpp) setTag(c *call, m *interfaces.SwInterfaceTagAddDel) {
	reply := &interfaces.SwInterfaceTagAddDelReply{}
	if i := v.at(m.SwIfIndex); i == nil {
		reply.Retval = retvalInvalidInterface
	} else if m.IsAdd {
		i.tag = m.Tag[:min(len(m.Tag), maxTagLength)]
	} else {
		i.tag = ""
	}
	c.reply(reply)
}

func (v *vpp) createLoopback(c *call, m *interfaces.CreateLoopbackInstance) {
	instance := m.UserInstance
	if !m.IsSpecified || instance == none {
		for instance = 0; v.loopbacks[instance]; instance++ {
		}
	}
	if v.loopbacks[instance] {
		c.reply(&interfaces.CreateLoopbackInstanceReply{
			Retval: retvalInvalidRegistration, SwIfIndex: everyIndex})
		return
	}
	v.loopbacks[instance] = true
	i := v.insert(&iface{
		name: fmt.Sprintf("loop%d", instance), device: "Loopback", ethernet: true,
		mac: ethernet_types.MacAddress{0xde, 0xad, 0, 0, byte(instance >> 8), byte(instance)},
		mtu: [4]uint32{defaultMTU}, linkMTU: defaultMTU, carrier: true,
	})
	c.reply(&interfaces.CreateLoopbackInstanceReply{SwIfIndex: interface_types.InterfaceIndex(i.index)})
}

func (v *vpp) deleteLoopback(c *call, m *interfaces.DeleteLoopback) {
	reply := &interfaces.DeleteLoopbackReply{}
	if i := v.at(m.SwIfIndex); i == nil || i.device != "Loopback" {
		reply.Retval = retvalInvalidInterface
	} else {
		var instance uint32
		fmt.Sscanf(i.name, "loop%d", &instance)
		delete(v.loopbacks, instance)
		v.removeSubinterfaces(i)
		v.remove(i)
	}
	c.reply(reply)
}

// createPorts creates local0 and the configured ports with their tables.
func (v *vpp) createPorts() error {
	for _, route := range v.config.Routes {
		v.makeTables(route.Table)
	}
	v.insert(&iface{name: "local0", device: "local"})
	for _, port := range v.config.Interfaces {
		mtu := port.IPMTU
		if mtu == 0 {
			mtu = defaultMTU
		}
		i := v.insert(&iface{
			name: port.Name, device: cmp.Or(port.Device, "af-packet"), tag: port.Tag, ethernet: true, mac: portMAC(port.Name),
			mtu: [4]uint32{mtu}, linkMTU: defaultMTU, carrier: defaultTrue(port.LinkUp),
		})
		v.setAdmin(i, defaultTrue(port.AdminUp))
		v.makeTables(port.Table)
		i.tables = [2]uint32{port.Table, port.Table}
		for _, prefix := range port.Addresses {
			i.addresses = append(i.addresses, addressWithPrefix(prefix))
		}
		for _, sub := range port.SubInterfaces {
			if _, retval := v.addSubinterface(i, sub.subif()); retval != 0 {
				return fmt.Errorf("%s.%d: create_subif returned %d", port.Name, sub.ID, retval)
			}
			made := v.subinterface(i, sub.ID)
			made.tag = sub.Tag
			v.setAdmin(made, i.adminUp)
		}
	}
	return nil
}

// makeTables creates a FIB table with this number in each family.
func (v *vpp) makeTables(id uint32) {
	for of := range v.tables {
		v.tables[of][id] = true
	}
}

// portMAC returns a locally administered MAC address. It is the same at each start.
func portMAC(name string) ethernet_types.MacAddress {
	hash := fnv.New32a()
	hash.Write([]byte(name))
	sum := hash.Sum32()
	return ethernet_types.MacAddress{0x02, 0xfe, byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}
}
