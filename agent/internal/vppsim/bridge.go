package vppsim

import (
	"maps"
	"slices"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"
)

// bridge is a bridge domain. The stand-in has bridge domains only so that a port can be in use as a bridged
// port.
type bridge struct {
	settings l2.BridgeDomainAddDelV2
}

func bridgeOperations() []operation {
	return []operation{
		on((*vpp).bridgeAddDel, &l2.BridgeDomainAddDelV2Reply{}),
		on((*vpp).setBridge, &l2.SwInterfaceSetL2BridgeReply{}),
		on((*vpp).bridgeDump, &l2.BridgeDomainDetails{}),
	}
}

func (v *vpp) bridgeAddDel(c *call, m *l2.BridgeDomainAddDelV2) {
	reply := &l2.BridgeDomainAddDelV2Reply{BdID: m.BdID}
	known := v.bridges[m.BdID]
	switch {
	case m.IsAdd && m.BdID == none:
		for reply.BdID = 1; v.bridges[reply.BdID] != nil; reply.BdID++ {
		}
		v.bridges[reply.BdID] = &bridge{settings: *m}
	case m.IsAdd && known != nil:
		reply.Retval = retvalBridgeExists
	case m.IsAdd:
		v.bridges[m.BdID] = &bridge{settings: *m}
	case known == nil:
		reply.Retval = retvalNoSuchEntry
	case len(v.members(m.BdID)) > 0:
		reply.Retval = retvalBridgeInUse
	default:
		delete(v.bridges, m.BdID)
	}
	c.reply(reply)
}

// setBridge puts an interface into a bridge domain. As in VPP, it creates the domain if the domain does not
// exist.
func (v *vpp) setBridge(c *call, m *l2.SwInterfaceSetL2Bridge) {
	reply := &l2.SwInterfaceSetL2BridgeReply{}
	i := v.at(m.RxSwIfIndex)
	switch {
	case i == nil:
		reply.Retval = retvalInvalidInterface
	case !m.Enable:
		v.leaveL2(i)
	default:
		if v.bridges[m.BdID] == nil {
			v.bridges[m.BdID] = &bridge{settings: l2.BridgeDomainAddDelV2{
				Flood: true, UuFlood: true, Forward: true, Learn: true}}
		}
		enterL2(i, l2mode{kind: bridgeMode, bridge: m.BdID, shg: m.Shg})
	}
	c.reply(reply)
}

func (v *vpp) members(id uint32) []l2.BridgeDomainSwIf {
	var members []l2.BridgeDomainSwIf
	for _, i := range v.interfaces {
		if i != nil && i.l2.kind == bridgeMode && i.l2.bridge == id {
			members = append(members, l2.BridgeDomainSwIf{
				SwIfIndex: interface_types.InterfaceIndex(i.index), Shg: i.l2.shg})
		}
	}
	return members
}

func (v *vpp) bridgeDump(c *call, m *l2.BridgeDomainDump) {
	for _, id := range slices.Sorted(maps.Keys(v.bridges)) {
		if m.BdID != none && m.BdID != id {
			continue
		}
		s := v.bridges[id].settings
		c.reply(&l2.BridgeDomainDetails{
			BdID: id, Flood: s.Flood, UuFlood: s.UuFlood, Forward: s.Forward, Learn: s.Learn,
			ArpTerm: s.ArpTerm, ArpUfwd: s.ArpUfwd, MacAge: s.MacAge, BdTag: s.BdTag,
			BviSwIfIndex: everyIndex, UuFwdSwIfIndex: everyIndex, SwIfDetails: v.members(id),
		})
	}
}
