package vppsim

import (
	"go.fd.io/govpp/binapi/geneve"
	"go.fd.io/govpp/binapi/interface_types"
)

const (
	geneveDecapL2    = 1 // GENEVE_INPUT_NEXT_L2_INPUT
	geneveDecapNexts = 4
)

func geneveOperations() []operation {
	return []operation{
		on((*vpp).geneveAddDel, &geneve.GeneveAddDelTunnel2Reply{}),
		on((*vpp).geneveDump, &geneve.GeneveTunnelDetails{}),
	}
}

func (v *vpp) geneveAddDel(c *call, m *geneve.GeneveAddDelTunnel2) {
	index, retval := v.geneveTunnel(m)
	c.reply(&geneve.GeneveAddDelTunnel2Reply{Retval: retval, SwIfIndex: interface_types.InterfaceIndex(index)})
}

func (v *vpp) geneveTunnel(m *geneve.GeneveAddDelTunnel2) (uint32, int32) {
	local, remote := netipAddr(m.LocalAddress), netipAddr(m.RemoteAddress)
	switch {
	case !v.knows(m.EncapVrfID, remote.Is6()):
		return none, retvalNoSuchFib
	case local == remote:
		return none, retvalSameEndpoints
	}
	t := &tunnel{
		key:   tunnelKey{dst: remote, vni: m.Vni & vniMask},
		local: m.LocalAddress, remote: m.RemoteAddress, vni: m.Vni, table: m.EncapVrfID, decapNext: m.DecapNextIndex, request: m, leavesL2First: true,
	}
	found := v.geneves.byKey[t.key]
	if !m.IsAdd {
		if found == nil {
			return none, retvalNoSuchEntry
		}
		v.removeTunnel(&v.geneves, found)
		return found.index, 0
	}
	if found != nil {
		return none, retvalTunnelExists
	}
	if t.decapNext == none {
		t.decapNext = geneveDecapL2
	}
	if t.decapNext >= geneveDecapNexts {
		return none, retvalDecapNext
	}
	v.addTunnel(&v.geneves, t, none, &iface{name: "geneve_tunnel%d", device: "GENEVE", carrier: true})
	v.setAdmin(v.interfaces[t.index], true)
	return t.index, 0
}

func (v *vpp) geneveDump(c *call, m *geneve.GeneveTunnelDump) {
	v.geneves.each(m.SwIfIndex, func(t *tunnel) {
		made := t.request.(*geneve.GeneveAddDelTunnel2)
		table := t.table
		if table != 0 && netipAddr(t.remote).Is6() {
			table = none // VPP looks for the table among the IPv4 tables, also for an IPv6 tunnel
		}
		c.reply(&geneve.GeneveTunnelDetails{
			SwIfIndex: interface_types.InterfaceIndex(t.index), SrcAddress: t.local, DstAddress: t.remote,
			McastSwIfIndex: made.McastSwIfIndex, EncapVrfID: table, DecapNextIndex: t.decapNext, Vni: t.vni,
		})
	})
}
