package plan

import (
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/ownership"
)

// creationClaims returns claims to the objects that the operations create.
func (d *differ) creationClaims(ops []Op) []ownership.Claim {
	var claims []ownership.Claim
	claim := func(end intent.Key, sub *ownership.SubInterface, tunnel *ownership.Tunnel) {
		revision := d.in.Present[d.present[end]].Revision
		claims = append(claims, ownership.Claim{VLL: end.VLL, End: end.End, Revision: revision, SubInterface: sub, Tunnel: tunnel})
	}
	for _, op := range ops {
		switch a := op.Action.(type) {
		case CreateSub:
			claim(op.End, &ownership.SubInterface{
				Port: a.Port.Name, ID: a.ID, Tags: uint8(a.Access.Tagging.Tags()), Dot1ad: a.Access.Tagging == intent.Dot1ad,
				Outer: a.Access.Outer, Inner: a.Access.Inner,
			}, nil)
		case CreateTunnel:
			claim(op.End, nil, new(ownership.TunnelOf(a.Tunnel)))
		}
	}
	return claims
}

// standingClaims returns the claims to existing interfaces. It returns claims to interfaces that the agent
// created but could not tag, as long as these interfaces exist. It also returns claims to ports that VLLs use
// as a whole, are to use as a whole, or are still cross-connected to. Such a port may have another user's
// tag, and only the journal has the port's original state. Finally, it returns the claims of memberClaims.
func (d *differ) standingClaims(in *intent.Intent) []ownership.Claim {
	var claims []ownership.Claim
	// The key has the VLL and not the end. If the VLL's other end takes over a port, only the other end
	// claims the port. If both ends claimed it, the port would be taken away from the other end again.
	type use struct{ vll, port string }
	wanted := make(map[use]bool)
	for _, end := range in.Present {
		if end.Access.Tagging != intent.Untagged || d.blocked[end.Key] != nil {
			continue
		}
		port := d.ByName(end.Access.Interface)
		wanted[use{end.VLL, port.Name}] = true
		claims = append(claims, ownership.Claim{
			VLL: end.VLL, End: end.End, Revision: end.Revision, Port: port.Name, WasUp: d.wasUp(end.Key, port),
			LinkLoss: end.UNILinkDown || end.AdminUp && d.isDownForLinkLoss(port), // until VPP shows the port as up
		})
	}
	for _, h := range d.endInterfaces {
		switch {
		case d.released[h.End].Release:
		case h.isPort() && wanted[use{h.End.VLL, h.Interface.Name}]:
		case h.isPort():
			for _, claim := range d.ports[h.Interface.Name] {
				if claim.Key() == h.End {
					claim.LinkLoss = claim.LinkLoss && !h.Interface.AdminUp
					claims = append(claims, claim)
				}
			}
		case h.Claim != nil:
			claims = append(claims, *h.Claim)
		}
	}
	return append(claims, d.memberClaims(in)...)
}
