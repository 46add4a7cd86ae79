package vppsim

import (
	"fmt"

	"go.fd.io/govpp/binapi/bond"
	"go.fd.io/govpp/binapi/interface_types"
)

// bondOperations handle bonds. The stand-in has bonds only so that a port can be in use as a member of a
// bond.
func bondOperations() []operation {
	return []operation{
		on((*vpp).bondCreate, &bond.BondCreate2Reply{}),
		on((*vpp).bondAddMember, &bond.BondAddMemberReply{}),
		on((*vpp).bondDetach, &bond.BondDetachMemberReply{}),
		on((*vpp).bondDump, &bond.SwBondInterfaceDetails{}),
		on((*vpp).memberDump, &bond.SwMemberInterfaceDetails{}),
	}
}

const bondDevice = "bond"

func (v *vpp) bondCreate(c *call, m *bond.BondCreate2) {
	id := m.ID
	if id == none {
		for id = 0; v.named(fmt.Sprintf("BondEthernet%d", id)) != nil; id++ {
		}
	}
	i := v.insert(&iface{name: fmt.Sprintf("BondEthernet%d", id), device: bondDevice, ethernet: true, mtu: [4]uint32{defaultMTU}})
	c.reply(&bond.BondCreate2Reply{SwIfIndex: interface_types.InterfaceIndex(i.index)})
}

func (v *vpp) bondAddMember(c *call, m *bond.BondAddMember) {
	reply := &bond.BondAddMemberReply{}
	port, to := v.at(m.SwIfIndex), v.at(m.BondSwIfIndex)
	switch {
	case port == nil:
		reply.Retval = retvalInvalidInterface
	case to == nil || to.device != bondDevice || port.device == bondDevice:
		reply.Retval = retvalNotEthernet // VPP returns INVALID_INTERFACE, which has the same number
	case port.bond != nil:
		reply.Retval = retvalValueExists
	default:
		port.bond = to
	}
	c.reply(reply)
}

func (v *vpp) bondDump(c *call, m *bond.SwBondInterfaceDump) {
	for _, i := range v.interfaces {
		if i != nil && i.device == bondDevice && (m.SwIfIndex == everyIndex || uint32(m.SwIfIndex) == i.index) {
			members, active := v.membersOf(i)
			c.reply(&bond.SwBondInterfaceDetails{
				SwIfIndex: interface_types.InterfaceIndex(i.index), InterfaceName: i.name, Members: members, ActiveMembers: active,
			})
		}
	}
}

// membersOf returns two numbers: the number of all members of the bond, and the number of members that send
// and receive for it.
func (v *vpp) membersOf(bond *iface) (members, active uint32) {
	for _, i := range v.interfaces {
		if i != nil && i.bond == bond {
			members++
			if i.adminUp && i.linkUp {
				active++
			}
		}
	}
	return members, active
}

func (v *vpp) memberDump(c *call, m *bond.SwMemberInterfaceDump) {
	for _, i := range v.interfaces {
		if i != nil && i.bond != nil && i.bond.index == uint32(m.SwIfIndex) {
			c.reply(&bond.SwMemberInterfaceDetails{SwIfIndex: interface_types.InterfaceIndex(i.index), InterfaceName: i.name})
		}
	}
}

func (v *vpp) bondDetach(c *call, m *bond.BondDetachMember) {
	reply := &bond.BondDetachMemberReply{}
	if port := v.at(m.SwIfIndex); port == nil || port.bond == nil {
		reply.Retval = retvalNotEthernet // VPP returns INVALID_INTERFACE, which has the same number
	} else {
		port.bond = nil
	}
	c.reply(reply)
}
