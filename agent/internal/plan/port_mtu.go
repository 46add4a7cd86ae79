package plan

import (
	"fmt"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/tunnel"
)

// If the setting intent.PortMTUs is on, portMTU sets the L3 MTU of a line's interface to the L3 MTU of the
// port. VPP uses the L3 MTU of a cross-connected interface only if the interface is a GRE tunnel. But vppcfg
// requires an MTU for every interface. It also requires that both sides of a cross-connect have the same MTU,
// and that this MTU does not exceed the MTU of the port (vppcfg 0.0.7, config/interface.py). A port that is
// used as a whole keeps its MTU.
func (b *operationBuilder) portMTU(end intent.End, ref Ref) {
	if !b.in.PortMTUs || end.Adopt || ref.Name == end.Access.Interface {
		return
	}
	want, actual := b.lineMTU(end), b.l3MTU(ref)
	if want == 0 || want == actual {
		return
	}
	b.add(end.Key, Set, 1, SetMTU{ref, want}, Drift{Field: "mtu", Desired: fmt.Sprint(want), Actual: fmt.Sprint(actual)},
		"for vppcfg both sides of a cross-connect have the MTU of the port").Follows = true
}

// lineMTU returns the L3 MTU (bytes) that both sides of the end's cross-connect need for vppcfg, or 0 if
// vppcfg accepts no MTU.
func (b *operationBuilder) lineMTU(end intent.End) uint32 {
	ports, mtu := []intent.Access{end.Access}, b.portL3MTU(end.Access)
	switch form := end.Tunnel.Kind().Vppcfg; {
	case end.Tunnel.Encapsulation == intent.L2XC:
		other := b.otherEnd(end).Access
		ports, mtu = append(ports, other), min(mtu, b.portL3MTU(other))
	case form == tunnel.AsPort: // VPP does not allow to change the link MTU
		_, serving := b.serving(end)
		if serving == nil || serving.LinkMTU > mtu || serving.LinkMTU < uint32(end.Frame) {
			return 0
		}
		mtu = serving.LinkMTU
	case form == tunnel.Unnamed:
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
