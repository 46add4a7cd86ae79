package plan

import (
	"fmt"
	"slices"
	"strings"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
)

// An adopted end uses interfaces that other clients created. The agent takes over these interfaces only if
// they match the end in every property except their tags, so that no frame is lost. Otherwise the end is in
// conflict, and the reason lists each difference. When the portal no longer marks the end as adopted, the
// agent treats it like any other end (docs/adr/0043).

// adopt assigns existing interfaces to the ends that the intent wants to adopt. It returns the ends whose
// interfaces differ from the intent, each with its reason. If one end of a local cross-connect cannot be
// adopted, the other end is not adopted either.
func (d *differ) adopt(in *intent.Intent) map[intent.Key]*Reason {
	refused := make(map[intent.Key]*Reason)
	for _, end := range in.Present {
		if !end.Adopt || d.blocked[end.Key] != nil {
			continue
		}
		found, differences := d.made(end)
		if len(differences) > 0 {
			refused[end.Key] = conflict("adoption_differs", found.name(end), "the existing interfaces differ from the order and were not changed: %s",
				strings.Join(differences, "; "))
			continue
		}
		for _, i := range []*observe.Interface{found.access, found.tunnel} {
			if i != nil && d.byIndex[i.Index] == nil {
				d.assign(&EndInterface{End: end.Key, Interface: i, Tunnel: d.TunnelAt(i.Index), Claim: d.portClaim(end, i), Adopted: true})
			}
		}
	}
	return refused
}

// madeOf contains the existing interfaces that an end would use. A missing interface is nil. An end of a
// local cross-connect has no tunnel.
type madeOf struct{ access, tunnel *observe.Interface }

func (m madeOf) name(end intent.End) string {
	if m.access != nil {
		return Describe(m.access)
	}
	return end.Access.Interface
}

// made finds the interfaces that an end would use, and their differences from the end's intent.
func (d *differ) made(end intent.End) (found madeOf, differences []string) {
	differ := func(format string, args ...any) { differences = append(differences, fmt.Sprintf(format, args...)) }
	for h := range d.interfacesOf(end.Key) {
		if !d.fits(h, end) {
			differ("%s is this end's, and does not fit it", Describe(h.Interface))
			return found, differences
		}
	}
	found.access = d.candidate(end.Key, d.accessAt(end))
	if found.access == nil {
		differ("%s has no unowned sub-interface for VLAN %s", end.Access.Interface, vlan(end.Access))
		return found, differences
	}
	var far *observe.Interface
	if end.Tunnel.Encapsulation == intent.L2XC {
		other := d.otherEnd(end)
		if far = d.candidate(other.Key, d.accessAt(other)); far == nil {
			differ("the other end does not exist")
			return found, differences
		}
	} else {
		if t := d.tunnels[end.Tunnel.Identity()]; t != nil && t.Default && t.Tunnel == end.Tunnel {
			found.tunnel = d.candidate(end.Key, d.ByIndex(t.Index))
		}
		if far = found.tunnel; far == nil {
			differ("no unowned tunnel has its addresses and its key")
			return found, differences
		}
	}
	a := found.access
	if sub := a.Sub; a.IsSub() && sub.Exact != end.Access.Exact {
		differ("%s has exact-match %t", a.Name, sub.Exact)
	}
	if d.Policed[a.Index] && !d.policedByUs(a.Index) {
		differ("%s has a policer that the agent did not apply", a.Name)
	}
	if linux, paired := d.LCP[a.Index]; paired { // with a cross-connect, the Linux interface gets no frames; and VPP deletes the pair with the sub-interface
		differ("%s is paired with the Linux interface %s", a.Name, linux)
	}
	if want := rewriteOf(end.Access.Tagging); a.Rewrite != want {
		differ("%s has the tag rewrite %d and not %d", a.Name, a.Rewrite, want)
	}
	if a.AdminUp != end.AdminUp {
		differ("%s has admin-up %t", a.Name, a.AdminUp)
	}
	d.checkConnect(a, far, differ)
	if found.tunnel == nil {
		return found, differences
	}
	d.checkConnect(far, a, differ)
	if far.Rewrite != 0 {
		differ("%s has the tag rewrite %d and not 0", far.Name, far.Rewrite)
	}
	if !far.AdminUp {
		differ("%s is down", far.Name)
	}
	if end.Tunnel.Kind().MTU != 0 && far.L3MTU < uint32(end.Frame) {
		differ("%s has the MTU %d, and frames of %d bytes are promised", far.Name, far.L3MTU, end.Frame)
	}
	return found, differences
}

func (d *differ) checkConnect(from, to *observe.Interface, differ func(string, ...any)) {
	if existing := d.leadsTo(from.Index); existing != to.Index {
		leads := "nowhere"
		if existing != observe.NoIndex {
			leads = "to " + d.describe(existing)
		}
		differ("%s is cross-connected %s and not to %s", from.Name, leads, to.Name)
	}
}

// accessAt returns the interface that receives the end's frames now, regardless of its owner. It returns nil
// if no interface receives them.
func (d *differ) accessAt(end intent.End) *observe.Interface {
	port := d.ByName(end.Access.Interface)
	if port == nil || end.Access.Tagging == intent.Untagged {
		return port
	}
	return d.subs.at(port.Index, end.Access)
}

// candidate returns i if it belongs to the end or to no end and is not relabelled, otherwise nil.
func (d *differ) candidate(end intent.Key, i *observe.Interface) *observe.Interface {
	if i == nil || slices.ContainsFunc(d.relabelled, func(h *EndInterface) bool { return h.Interface == i }) {
		return nil
	}
	if h := d.byIndex[i.Index]; h != nil && h.End != end {
		return nil
	}
	return i
}

// SubInterfacesToAdopt returns the sub-interfaces that the intents want to adopt and that do not have the
// tags of their ends yet. Other clients may police these sub-interfaces.
func SubInterfacesToAdopt(s *observe.Snapshot, ins ...*intent.Intent) []*observe.Interface {
	var subs []*observe.Interface
	for _, in := range ins {
		for _, end := range in.Present {
			port := s.ByName(end.Access.Interface)
			if !end.Adopt || port == nil || end.Access.Tagging == intent.Untagged {
				continue
			}
			for _, sub := range s.Subs(port.Index) {
				tag, ours := ownership.ParseTag(sub.Tag)
				if !sub.Sub.Wide() && vlanMatchOf(sub) == vlanMatchFor(port.Index, end.Access) && (!ours || tag.Key != end.Key) {
					subs = append(subs, sub)
				}
			}
		}
	}
	return subs
}

// portClaim returns the end's claim to i if i is a port, otherwise nil. A port needs a claim because it may
// have another user's tag.
func (d *differ) portClaim(end intent.End, i *observe.Interface) *ownership.Claim {
	if i.IsSub() || d.TunnelAt(i.Index) != nil {
		return nil
	}
	return &ownership.Claim{VLL: end.VLL, End: end.Key.End, Revision: end.Revision, Port: i.Name, WasUp: i.AdminUp}
}

// tagged returns all endInterfaces except the interfaces that this plan adopts.
func (d *differ) tagged() []*EndInterface {
	return slices.DeleteFunc(slices.Clone(d.endInterfaces), func(h *EndInterface) bool { return h.Adopted })
}

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
