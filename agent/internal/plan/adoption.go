package plan

import (
	"fmt"
	"slices"
	"strings"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
)

// An end that is adopted is made of interfaces that others made. They become its own only if all that they are is what
// the end wants, so that nothing but their tags has to change and no frame is lost; else the end is in conflict, with
// each difference. Once the portal no longer says that it is adopted, it is an end like any other (docs/adr/0043).

// adopt takes for holdings what the adopted ends are made of. Those of which something is otherwise than wanted are
// returned, each with its reason; both ends of a local cross-connect stand and fall together.
func (d *differ) adopt(in *intent.Intent) map[intent.Key]*Reason {
	refused := make(map[intent.Key]*Reason)
	for _, end := range in.Present {
		if !end.Adopt || d.blocked[end.Key] != nil {
			continue
		}
		found, differences := d.made(end)
		if len(differences) > 0 {
			refused[end.Key] = conflict("adoption_differs", found.name(end), "what is there is not as ordered, and was left as it is: %s",
				strings.Join(differences, "; "))
			continue
		}
		for _, i := range []*observe.Interface{found.access, found.tunnel} {
			if i != nil && d.byIndex[i.Index] == nil {
				d.hold(&Holding{End: end.Key, Interface: i, Tunnel: d.TunnelAt(i.Index), Claim: d.portClaim(end, i), Adopted: true})
			}
		}
	}
	return refused
}

// madeOf are the interfaces that serve an end, or would; nil for what is not there. Of a local cross-connect the far one
// is the other end's access.
type madeOf struct{ access, tunnel *observe.Interface }

func (m madeOf) name(end intent.End) string {
	if m.access != nil {
		return Describe(m.access)
	}
	return end.Access.Interface
}

// made finds what an end is to be made of, and in what it is otherwise than the end wants.
func (d *differ) made(end intent.End) (found madeOf, differences []string) {
	differ := func(format string, args ...any) { differences = append(differences, fmt.Sprintf(format, args...)) }
	for h := range d.holdingsOf(end.Key) {
		if !d.fits(h, end) {
			differ("%s is this end's, and does not fit it", Describe(h.Interface))
			return found, differences
		}
	}
	found.access = d.candidate(end.Key, d.accessAt(end))
	if found.access == nil {
		differ("%s has no sub-interface for VLAN %s that is nobody's", end.Access.Interface, vlan(end.Access))
		return found, differences
	}
	var far *observe.Interface
	if end.Tunnel.Encapsulation == intent.L2XC {
		other := d.otherEnd(end)
		if far = d.candidate(other.Key, d.accessAt(other)); far == nil {
			differ("the other end is not there")
			return found, differences
		}
	} else {
		if t := d.tunnels[end.Tunnel.Identity()]; t != nil && t.Default && t.Tunnel == end.Tunnel {
			found.tunnel = d.candidate(end.Key, d.ByIndex(t.Index))
		}
		if far = found.tunnel; far == nil {
			differ("no tunnel that is nobody's has its addresses and its key")
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
	if linux, paired := d.LCP[a.Index]; paired { // a cross-connect keeps frames from the pair, and the pair goes with its interface
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
	if end.Tunnel.Encapsulation == intent.GRE && far.L3MTU < uint32(end.Frame) {
		differ("%s has the MTU %d, and frames of %d bytes are promised", far.Name, far.L3MTU, end.Frame)
	}
	return found, differences
}

func (d *differ) checkConnect(from, to *observe.Interface, differ func(string, ...any)) {
	if there := d.leadsTo(from.Index); there != to.Index {
		leads := "nowhere"
		if there != observe.NoIndex {
			leads = "to " + d.describe(there)
		}
		differ("%s is cross-connected %s and not to %s", from.Name, leads, to.Name)
	}
}

// accessAt is the interface that gets the end's frames now, whoever's it is; nil for none.
func (d *differ) accessAt(end intent.End) *observe.Interface {
	port := d.ByName(end.Access.Interface)
	if port == nil || end.Access.Tagging == intent.Untagged {
		return port
	}
	return d.subs.at(port.Index, end.Access)
}

// candidate is the interface where it is the end's or nobody's.
func (d *differ) candidate(end intent.Key, i *observe.Interface) *observe.Interface {
	if i == nil {
		return nil
	}
	if h := d.byIndex[i.Index]; h != nil && h.End != end {
		return nil
	}
	for _, h := range d.relabelled {
		if h.Interface == i {
			return nil
		}
	}
	return i
}

// SubInterfacesToAdopt are those that ends are to be made of and that bear no tag of theirs yet, so that somebody else may
// police them.
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

// portClaim is what an end claims of a port, which may bear somebody else's tag; nil for all else.
func (d *differ) portClaim(end intent.End, i *observe.Interface) *ownership.Claim {
	if i.IsSub() || d.TunnelAt(i.Index) != nil {
		return nil
	}
	return &ownership.Claim{VLL: end.VLL, End: end.Key.End, Revision: end.Revision, Port: i.Name, WasUp: i.AdminUp}
}

// tagged are the holdings but for those that are only about to be adopted.
func (d *differ) tagged() []*Holding {
	return slices.DeleteFunc(slices.Clone(d.holdings), func(h *Holding) bool { return h.Adopted })
}
