package vppsim

import (
	"fmt"
	"net/netip"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
)

// vniMask selects the 24 bits of a VNI. VPP does not check the other bits of the number, so several
// numbers can mean the same VNI.
const vniMask = 1<<24 - 1

// decapDrop is the next node 0 of the tunnels' input nodes. This node drops all frames. 0 is also Go's zero
// value.
const decapDrop = 0

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

	// leavesL2First is true if VPP moves the tunnel to L3 before it deletes the interface. In this case, the
	// interface that is cross-connected with the tunnel stays connected in one direction. The field is true
	// for GENEVE and GRE, and false for VXLAN.
	leavesL2First bool
}

// tunnels is the pool of tunnels with one encapsulation.
type tunnels struct {
	pool      []*tunnel
	freed     []uint32
	byKey     map[tunnelKey]*tunnel
	byIndex   map[uint32]*tunnel
	instances map[uint32]bool
}

// add assigns a slot and an instance to a tunnel. If wanted is none, the instance is the number of the slot.
// add returns false if the instance is in use.
func (ts *tunnels) add(t *tunnel, wanted uint32) bool {
	if ts.byKey == nil {
		ts.byKey, ts.byIndex, ts.instances = map[tunnelKey]*tunnel{}, map[uint32]*tunnel{}, map[uint32]bool{}
	}
	t.slot = uint32(len(ts.pool))
	if n := len(ts.freed); n > 0 {
		t.slot = ts.freed[n-1]
	}
	t.instance = wanted
	if wanted == none {
		t.instance = t.slot
	}
	if ts.instances[t.instance] {
		return false
	}
	if n := len(ts.freed); n > 0 {
		ts.freed = ts.freed[:n-1]
		ts.pool[t.slot] = t
	} else {
		ts.pool = append(ts.pool, t)
	}
	ts.byKey[t.key], ts.instances[t.instance] = t, true
	return true
}

// addTunnel creates the tunnel and its interface. template describes the interface.
func (v *vpp) addTunnel(ts *tunnels, t *tunnel, wanted uint32, template *iface) int32 {
	if !ts.add(t, wanted) {
		return retvalInstanceInUse
	}
	template.name = fmt.Sprintf(template.name, t.instance)
	t.index = v.insert(template).index
	ts.byIndex[t.index] = t
	v.listenAtTunnels()
	return 0
}

func (v *vpp) removeTunnel(ts *tunnels, t *tunnel) {
	delete(ts.byKey, t.key)
	delete(ts.byIndex, t.index)
	delete(ts.instances, t.instance)
	ts.pool[t.slot] = nil
	ts.freed = append(ts.freed, t.slot)
	i := v.interfaces[t.index]
	v.setAdmin(i, false)
	if t.leavesL2First {
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
	for _, t := range ts.pool {
		if t != nil {
			visit(t)
		}
	}
}

// tunnelAt returns the tunnel with this interface, of any encapsulation, or nil.
func (v *vpp) tunnelAt(index uint32) *tunnel {
	for _, ts := range []*tunnels{&v.vxlans, &v.geneves, &v.gres} {
		if t := ts.byIndex[index]; t != nil {
			return t
		}
	}
	return nil
}
