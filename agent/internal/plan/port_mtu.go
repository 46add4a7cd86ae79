package plan

import (
	"fmt"

	"longline.dev/agent/internal/intent"
)

// portMTU gives what was made for a line the L3 MTU of its port, where this router wants it (intent.PortMTUs). VPP looks at
// that MTU on no cross-connected interface but GRE's. vppcfg wants every interface to have one, and both sides of a
// cross-connect the same, no larger than the port's (vppcfg 0.0.7, config/interface.py). A port that is taken whole keeps
// the one that it has.
func (b *operationBuilder) portMTU(end intent.End, ref Ref) {
	if !b.in.PortMTUs || end.Adopt || ref.Name == end.Access.Interface {
		return
	}
	want, actual := b.lineMTU(end), b.l3MTU(ref)
	if want == 0 || want == actual {
		return
	}
	b.add(end.Key, Set, 1, SetMTU{ref, want}, Drift{Field: "mtu", Desired: fmt.Sprint(want), Actual: fmt.Sprint(actual)},
		"beside vppcfg both sides of a cross-connect have the MTU of the port").Follows = true
}

// lineMTU is the L3 MTU that both sides of the end's cross-connect can have for vppcfg (bytes), 0 where there is none.
func (b *operationBuilder) lineMTU(end intent.End) uint32 {
	ports, mtu := []intent.Access{end.Access}, b.portL3MTU(end.Access)
	switch end.Tunnel.Encapsulation {
	case intent.L2XC:
		other := b.otherEnd(end).Access
		ports, mtu = append(ports, other), min(mtu, b.portL3MTU(other))
	case intent.GRE: // vppcfg takes it for a physical port, whose MTU is that of its link, and VPP lets nobody change that
		_, tunnel := b.serving(end)
		if tunnel == nil || tunnel.LinkMTU > mtu || tunnel.LinkMTU < uint32(end.Frame) {
			return 0
		}
		mtu = tunnel.LinkMTU
	case intent.GENEVE: // vppcfg cannot have it at all
		return 0
	}
	for _, port := range ports {
		if port.Tagging == intent.Untagged && b.portL3MTU(port) != mtu {
			return 0
		}
	}
	return mtu
}

func (b *operationBuilder) portL3MTU(a intent.Access) uint32 {
	if port := b.ByName(a.Interface); port != nil {
		return port.L3MTU
	}
	return 0
}
