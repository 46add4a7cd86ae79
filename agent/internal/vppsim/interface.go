package vppsim

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"iter"
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

// insert adds an interface. It assigns an index and resets the counters of this index.
func (v *vpp) insert(i *iface) *iface {
	i.index = v.interfaces.add(i)
	if !i.isSub() {
		i.sup = i.index
		v.vlans[untaggedKey(i.index)] = i
	}
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

func (v *vpp) release(index uint32) {
	v.interfaces.remove(index)
	delete(v.vlans, untaggedKey(index))
	delete(v.policers.applied, index)
	delete(v.classifiers.works, index)
	v.segment.rename(index, "deleted")
}

func (v *vpp) at(index interface_types.InterfaceIndex) *iface { return v.interfaces.at(uint32(index)) }

func (v *vpp) named(name string) *iface {
	for _, i := range v.interfaces.all() {
		if i.name == name {
			return i
		}
	}
	return nil
}

// port returns the port of a sub-interface. For another interface, it returns the interface itself.
func (v *vpp) port(i *iface) *iface { return v.interfaces.at(i.sup) }

func (v *vpp) flags(i *iface) interface_types.IfStatusFlags {
	var flags interface_types.IfStatusFlags
	if i.adminUp {
		flags |= interface_types.IF_STATUS_API_FLAG_ADMIN_UP
	}
	if v.port(i).linkUp {
		flags |= interface_types.IF_STATUS_API_FLAG_LINK_UP
	}
	return flags
}

func (v *vpp) interfaceDump(m *interfaces.SwInterfaceDump, send func(*interfaces.SwInterfaceDetails)) {
	if !m.NameFilterValid && m.SwIfIndex != everyIndex && m.SwIfIndex != 0 {
		if i := v.at(m.SwIfIndex); i != nil {
			send(v.details(i))
		}
		return
	}
	for _, i := range v.interfaces.all() {
		if !m.NameFilterValid || strings.Contains(strings.ToLower(i.name), strings.ToLower(m.NameFilter)) {
			send(v.details(i))
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
func (v *vpp) setFlags(i *iface, m *interfaces.SwInterfaceSetFlags) int32 {
	up := m.Flags&interface_types.IF_STATUS_API_FLAG_ADMIN_UP != 0
	if i.isSub() && up && !v.port(i).adminUp {
		return retvalUnspecified
	}
	v.setAdmin(i, up)
	return 0
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

func (v *vpp) setMTU(i *iface, m *interfaces.SwInterfaceSetMtu) int32 {
	copy(i.mtu[:], m.Mtu)
	return 0
}

func (v *vpp) setTag(i *iface, m *interfaces.SwInterfaceTagAddDel) int32 {
	i.tag = ""
	if m.IsAdd {
		i.tag = m.Tag[:min(len(m.Tag), maxTagLength)]
	}
	return 0
}

func (v *vpp) createLoopback(m *interfaces.CreateLoopbackInstance, reply *interfaces.CreateLoopbackInstanceReply) {
	instance := m.UserInstance
	if !m.IsSpecified || instance == none {
		for instance = 0; v.loopbacks[instance]; instance++ {
		}
	}
	if v.loopbacks[instance] {
		reply.Retval, reply.SwIfIndex = retvalInvalidRegistration, everyIndex
		return
	}
	v.loopbacks[instance] = true
	reply.SwIfIndex = interface_types.InterfaceIndex(v.insert(&iface{
		name: fmt.Sprintf("loop%d", instance), device: "Loopback", ethernet: true,
		mac: ethernet_types.MacAddress{0xde, 0xad, 0, 0, byte(instance >> 8), byte(instance)},
		mtu: [4]uint32{defaultMTU}, linkMTU: defaultMTU, carrier: true,
	}).index)
}

func (v *vpp) deleteLoopback(i *iface, _ *interfaces.DeleteLoopback) int32 {
	if i.device != "Loopback" {
		return retvalInvalidInterface
	}
	var instance uint32
	fmt.Sscanf(i.name, "loop%d", &instance)
	delete(v.loopbacks, instance)
	v.removeSubinterfaces(i)
	v.remove(i)
	return 0
}

// createPorts creates local0 and the configured ports with their tables.
func (v *vpp) createPorts() error {
	for _, route := range v.config.Routes {
		v.makeTables(route.Table)
	}
	v.insert(&iface{name: "local0", device: "local"})
	for _, port := range v.config.Interfaces {
		i := v.insert(&iface{
			name: port.Name, device: cmp.Or(port.Device, "af-packet"), tag: port.Tag, ethernet: true, mac: portMAC(port.Name),
			mtu: [4]uint32{cmp.Or(port.IPMTU, defaultMTU)}, linkMTU: defaultMTU, carrier: defaultTrue(port.LinkUp),
		})
		v.setAdmin(i, defaultTrue(port.AdminUp))
		v.makeTables(port.Table)
		i.tables = [2]uint32{port.Table, port.Table}
		for _, prefix := range port.Addresses {
			i.addresses = append(i.addresses, addressWithPrefix(prefix))
		}
		for _, sub := range port.SubInterfaces {
			made, retval := v.addSubinterface(i, sub.subif())
			if retval != 0 {
				return fmt.Errorf("%s.%d: create_subif returned %d", port.Name, sub.ID, retval)
			}
			made.tag = sub.Tag
			v.setAdmin(made, i.adminUp)
		}
	}
	return nil
}

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

// pool has objects by index. As VPP does, it assigns the free index that was freed last first.
type pool[T any] struct {
	items []*T // nil for a deleted object
	freed []uint32
}

// next returns the index of the next object that is added.
func (p *pool[T]) next() uint32 {
	if n := len(p.freed); n > 0 {
		return p.freed[n-1]
	}
	return uint32(len(p.items))
}

func (p *pool[T]) add(item *T) (index uint32) {
	if index = p.next(); int(index) < len(p.items) {
		p.freed = p.freed[:len(p.freed)-1]
		p.items[index] = item
	} else {
		p.items = append(p.items, item)
	}
	return index
}

func (p *pool[T]) remove(index uint32) {
	p.items[index] = nil
	p.freed = append(p.freed, index)
}

// at returns the object with this index, or nil if it does not exist.
func (p *pool[T]) at(index uint32) *T {
	if uint64(index) < uint64(len(p.items)) {
		return p.items[index]
	}
	return nil
}

// all returns the existing objects, sorted by index.
func (p *pool[T]) all() iter.Seq2[uint32, *T] {
	return func(yield func(uint32, *T) bool) {
		for index, item := range p.items {
			if item != nil && !yield(uint32(index), item) {
				return
			}
		}
	}
}
