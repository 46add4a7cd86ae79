package vppsim

import (
	"fmt"

	"go.fd.io/govpp/binapi/bond"
	"go.fd.io/govpp/binapi/interface_types"
)

// bondOperations make bonds known: a member of one is somebody's.
func bondOperations() []operation {
	return []operation{
		on((*vpp).bondCreate, &bond.BondCreate2Reply{}),
		on((*vpp).bondAddMember, &bond.BondAddMemberReply{}),
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
	if port == nil || to == nil || to.device != bondDevice {
		reply.Retval = retvalInvalidInterface
	} else {
		port.bond = to
	}
	c.reply(reply)
}

func (v *vpp) bondDump(c *call, m *bond.SwBondInterfaceDump) {
	for _, i := range v.interfaces {
		if i != nil && i.device == bondDevice && (m.SwIfIndex == everyIndex || uint32(m.SwIfIndex) == i.index) {
			c.reply(&bond.SwBondInterfaceDetails{SwIfIndex: interface_types.InterfaceIndex(i.index), InterfaceName: i.name})
		}
	}
}

func (v *vpp) memberDump(c *call, m *bond.SwMemberInterfaceDump) {
	for _, i := range v.interfaces {
		if i != nil && i.bond != nil && i.bond.index == uint32(m.SwIfIndex) {
			c.reply(&bond.SwMemberInterfaceDetails{SwIfIndex: interface_types.InterfaceIndex(i.index), InterfaceName: i.name})
		}
	}
}
