package vppsim

import (
	"fmt"
	"maps"
	"slices"

	"go.fd.io/govpp/binapi/bond"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/lcp"
)

// The stand-in has bonds, bridge domains and pairs of linux-cp only so that a port can be in use by them.

const bondDevice = "bond"

func (v *vpp) bondCreate(m *bond.BondCreate2, reply *bond.BondCreate2Reply) {
	id := m.ID
	if id == none {
		for id = 0; v.named(fmt.Sprintf("BondEthernet%d", id)) != nil; id++ {
		}
	}
	i := v.insert(&iface{name: fmt.Sprintf("BondEthernet%d", id), device: bondDevice, ethernet: true, mtu: [4]uint32{defaultMTU}})
	reply.SwIfIndex = interface_types.InterfaceIndex(i.index)
}

func (v *vpp) bondAddMember(port *iface, m *bond.BondAddMember) int32 {
	to := v.at(m.BondSwIfIndex)
	switch {
	case to == nil || to.device != bondDevice || port.device == bondDevice:
		return retvalNotEthernet // VPP returns INVALID_INTERFACE, which has the same number
	case port.bond != nil:
		return retvalValueExists
	}
	port.bond = to
	return 0
}

func (v *vpp) bondDetach(m *bond.BondDetachMember) int32 {
	port := v.at(m.SwIfIndex)
	if port == nil || port.bond == nil {
		return retvalNotEthernet // VPP returns INVALID_INTERFACE, which has the same number
	}
	port.bond = nil
	return 0
}

func (v *vpp) bondDump(m *bond.SwBondInterfaceDump, send func(*bond.SwBondInterfaceDetails)) {
	for index, i := range v.interfaces.all() {
		if i.device == bondDevice && (m.SwIfIndex == everyIndex || uint32(m.SwIfIndex) == index) {
			members, active := v.membersOf(i)
			send(&bond.SwBondInterfaceDetails{
				SwIfIndex: interface_types.InterfaceIndex(index), InterfaceName: i.name, Members: members, ActiveMembers: active,
			})
		}
	}
}

// membersOf returns two numbers: the number of all members of the bond, and the number of members that send
// and receive for it.
func (v *vpp) membersOf(bond *iface) (members, active uint32) {
	for _, i := range v.interfaces.all() {
		if i.bond == bond {
			members++
			if i.adminUp && i.linkUp {
				active++
			}
		}
	}
	return members, active
}

func (v *vpp) memberDump(m *bond.SwMemberInterfaceDump, send func(*bond.SwMemberInterfaceDetails)) {
	for index, i := range v.interfaces.all() {
		if i.bond != nil && i.bond.index == uint32(m.SwIfIndex) {
			send(&bond.SwMemberInterfaceDetails{SwIfIndex: interface_types.InterfaceIndex(index), InterfaceName: i.name})
		}
	}
}

func (v *vpp) bridgeAddDel(m *l2.BridgeDomainAddDelV2, reply *l2.BridgeDomainAddDelV2Reply) {
	reply.BdID = m.BdID
	known := v.bridges[m.BdID]
	switch {
	case m.IsAdd && m.BdID == none:
		for reply.BdID = 1; v.bridges[reply.BdID] != nil; reply.BdID++ {
		}
		v.bridges[reply.BdID] = m
	case m.IsAdd && known != nil:
		reply.Retval = retvalBridgeExists
	case m.IsAdd:
		v.bridges[m.BdID] = m
	case known == nil:
		reply.Retval = retvalNoSuchEntry
	case len(v.members(m.BdID)) > 0:
		reply.Retval = retvalBridgeInUse
	default:
		delete(v.bridges, m.BdID)
	}
}

// setBridge puts an interface into a bridge domain. As in VPP, it creates the domain if the domain does not
// exist.
func (v *vpp) setBridge(m *l2.SwInterfaceSetL2Bridge) int32 {
	i := v.at(m.RxSwIfIndex)
	switch {
	case i == nil:
		return retvalInvalidInterface
	case !m.Enable:
		v.leaveL2(i)
		return 0
	}
	if v.bridges[m.BdID] == nil {
		v.bridges[m.BdID] = &l2.BridgeDomainAddDelV2{Flood: true, UuFlood: true, Forward: true, Learn: true}
	}
	i.l2 = l2mode{kind: bridgeMode, bridge: m.BdID, shg: m.Shg} // the tag rewrite of another L2 mode remains
	return 0
}

func (v *vpp) members(id uint32) (members []l2.BridgeDomainSwIf) {
	for index, i := range v.interfaces.all() {
		if i.l2.kind == bridgeMode && i.l2.bridge == id {
			members = append(members, l2.BridgeDomainSwIf{SwIfIndex: interface_types.InterfaceIndex(index), Shg: i.l2.shg})
		}
	}
	return members
}

func (v *vpp) bridgeDump(m *l2.BridgeDomainDump, send func(*l2.BridgeDomainDetails)) {
	for _, id := range slices.Sorted(maps.Keys(v.bridges)) {
		if m.BdID != none && m.BdID != id {
			continue
		}
		s := v.bridges[id]
		send(&l2.BridgeDomainDetails{
			BdID: id, Flood: s.Flood, UuFlood: s.UuFlood, Forward: s.Forward, Learn: s.Learn,
			ArpTerm: s.ArpTerm, ArpUfwd: s.ArpUfwd, MacAge: s.MacAge, BdTag: s.BdTag,
			BviSwIfIndex: everyIndex, UuFwdSwIfIndex: everyIndex, SwIfDetails: v.members(id),
		})
	}
}

// LCPPair is a port that the linux-cp plugin mirrors into Linux. The messages of the plugin are in the message
// table only if the configuration has pairs, because VPP does not load the plugin by default.
type LCPPair struct {
	Interface string `json:"interface"`
	Host      string `json:"host"`
}

func (v *vpp) lcpPairs(c *call, _ *lcp.LcpItfPairGet) {
	for n, pair := range v.config.LCPPairs {
		if i := v.named(pair.Interface); i != nil {
			c.reply(&lcp.LcpItfPairDetails{
				PhySwIfIndex: interface_types.InterfaceIndex(i.index), HostSwIfIndex: everyIndex,
				VifIndex: uint32(n + 1), HostIfName: pair.Host,
			})
		}
	}
	c.reply(&lcp.LcpItfPairGetReply{Cursor: none})
}
