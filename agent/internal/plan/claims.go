package plan

import (
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/own"
)

// creations are claims to what the operations are about to make.
func creations(ops []Op, present map[intent.Key]intent.End) []own.Claim {
	var claims []own.Claim
	for _, op := range ops {
		claim := own.Claim{VLL: op.End.VLL, End: op.End.End, Revision: present[op.End].Revision}
		switch a := op.Action.(type) {
		case CreateSub:
			claim.SubInterface = &own.SubInterface{
				Port: a.Port.Name, ID: a.ID, Tags: uint8(a.Access.Tagging.Tags()), Dot1ad: a.Access.Tagging == intent.Dot1ad,
				Outer: a.Access.Outer, Inner: a.Access.Inner,
			}
		case CreateTunnel:
			tunnel := own.TunnelOf(a.Tunnel)
			claim.Tunnel = &tunnel
		default:
			continue
		}
		claims = append(claims, claim)
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
