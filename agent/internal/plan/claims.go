package plan

import (
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/own"
)

// creations are claims to what the operations are about to make.
func (d *differ) creations(ops []Op) []own.Claim {
	var claims []own.Claim
	claim := func(end intent.Key, sub *own.SubInterface, tunnel *own.Tunnel) {
		revision := d.in.Present[d.present[end]].Revision
		claims = append(claims, own.Claim{VLL: end.VLL, End: end.End, Revision: revision, SubInterface: sub, Tunnel: tunnel})
	}
	for _, op := range ops {
		switch a := op.Action.(type) {
		case CreateSub:
			claim(op.End, &own.SubInterface{
				Port: a.Port.Name, ID: a.ID, Tags: uint8(a.Access.Tagging.Tags()), Dot1ad: a.Access.Tagging == intent.Dot1ad,
				Outer: a.Access.Outer, Inner: a.Access.Inner,
			}, nil)
		case CreateTunnel:
			tunnel := own.TunnelOf(a.Tunnel)
			claim(op.End, nil, &tunnel)
		}
	}
	return claims
}

// standing are claims to what has no tag of the agent: its orphans, as long as they are there; ports with
// somebody else's tag that VLLs use, are to use, or are still cross-connected to.
func (d *differ) standing(in *intent.Intent) []own.Claim {
	var claims []own.Claim
	type use struct {
		end  intent.Key
		port string
	}
	wanted := make(map[use]bool)
	for _, end := range in.Present {
		if end.Access.Tagging != intent.Untagged || d.blocked[end.Key] != nil {
			continue
		}
		port := d.ByName(end.Access.Interface)
		if _, ours := own.ParseTag(port.Tag); port.Tag != "" && !ours {
			wanted[use{end.Key, port.Name}] = true
			claims = append(claims, own.Claim{VLL: end.VLL, End: end.End, Revision: end.Revision, Port: port.Name})
		}
	}
	for _, h := range d.holdings {
		if h.Claim != nil && !wanted[use{h.End, h.Claim.Port}] {
			claims = append(claims, *h.Claim)
		}
	}
	return claims
}
