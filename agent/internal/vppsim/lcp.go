package vppsim

import (
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/lcp"
)

// LCPPair is a port that the linux-cp plugin mirrors into Linux.
type LCPPair struct {
	Interface string `json:"interface"`
	Host      string `json:"host"`
}

// lcpOperations handle linux-cp. They are in the message table only if the configuration has pairs,
// because VPP does not load the plugin by default.
func lcpOperations() []operation {
	return []operation{
		on((*vpp).lcpPairs, &lcp.LcpItfPairDetails{}, &lcp.LcpItfPairGetReply{}),
		on((*vpp).lcpPairsV2, &lcp.LcpItfPairDetails{}, &lcp.LcpItfPairGetV2Reply{}),
	}
}

func (v *vpp) lcpPairs(c *call, _ *lcp.LcpItfPairGet) {
	v.sendLCPPairs(c, everyIndex)
	c.reply(&lcp.LcpItfPairGetReply{Cursor: none})
}

func (v *vpp) lcpPairsV2(c *call, m *lcp.LcpItfPairGetV2) {
	v.sendLCPPairs(c, m.SwIfIndex)
	c.reply(&lcp.LcpItfPairGetV2Reply{Cursor: none})
}

func (v *vpp) sendLCPPairs(c *call, wanted interface_types.InterfaceIndex) {
	for n, pair := range v.config.LCPPairs {
		i := v.named(pair.Interface)
		if i == nil || wanted != everyIndex && uint32(wanted) != i.index {
			continue
		}
		c.reply(&lcp.LcpItfPairDetails{
			PhySwIfIndex: interface_types.InterfaceIndex(i.index), HostSwIfIndex: everyIndex,
			VifIndex: uint32(n + 1), HostIfName: pair.Host,
		})
	}
}
