package plan

import (
	"maps"
	"slices"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
)

// Plan contains the operations to send to VPP, and the ends for which nothing can be done.
type Plan struct {
	Ops []Op // in order
	// Blocked are the ends for which nothing is done, each with its reason.
	Blocked map[intent.Key]*Reason
	// Policed are the ends whose bandwidth profile VPP enforces now.
	Policed map[intent.Key]bool
	// Owned are all interfaces of the agent in VPP. Quarantined are the interfaces of the agent whose ends the
	// intent does not name.
	Owned, Quarantined []*EndInterface
	// Relabelled are the interfaces that the agent created and tagged, and that no longer have its tag.
	Relabelled []*EndInterface
	// SentInto has the indices of interfaces that are deleted already or that this plan deletes, and into
	// which another user still sends frames. A new interface with such an index must not be used.
	SentInto map[uint32]*Reason
	// StandingClaims are the claims that currently prove the ownership of existing objects. CreationClaims are
	// the claims to the objects that the plan creates. All of these claims have to be on disk before the plan
	// is carried out.
	StandingClaims, CreationClaims []ownership.Claim

	released map[intent.Key]intent.Tombstone // the ends whose interfaces are released instead of deleted
}

// ShutDown maps ends to the names of their ports. It has the ends whose port is set down, or is to be set
// down, because of the far end's link. Such a port may still be up.
func (p *Plan) ShutDown() map[intent.Key]string {
	kept := make(map[intent.Key]string)
	for _, claim := range p.StandingClaims {
		if claim.LinkLoss && claim.Port != "" {
			kept[claim.Key()] = claim.Port
		}
	}
	return kept
}

// MembersShutDown returns the names of the bond members that the agent has set down because of the far end's
// link and has not set up again.
func (p *Plan) MembersShutDown() (names []string) {
	for _, claim := range p.StandingClaims {
		if claim.Member != "" {
			names = append(names, claim.Member)
		}
	}
	return names
}

// Diff plans the changes from the observed to the intended state. Guarantees:
//
//   - No operation changes an interface that the agent does not own, with these exceptions. The agent sets a
//     port up if the port carries a sub-interface that has to come up. It sets a port down only if a VLL that
//     is to be down uses the port as a whole, or uses the port's bond as a whole. When the VLL is removed,
//     the agent sets the port up again if it was up before the VLL. If a classify table of the agent is still
//     bound to an index, and an interface of another user gets this index, the agent unbinds the table.
//   - An end that cannot be created as intended stays completely unchanged, and Blocked has the reason.
//     Exception: the agent may have set the end's port down because of the far end's link. It sets this port
//     up as soon as another user uses the port, or the intent no longer requires the port to be down.
//   - Quarantined interfaces and released interfaces keep forwarding.
//   - For an adopted end, the agent changes only tags.
//   - An object is deleted and created again only if its key changes, or in DiffRebuild. All other changes
//     are made in place.
//
// withheld contains the ends that must not be changed now, each with its reason. These ends count as blocked.
func Diff(in *intent.Intent, s *observe.Snapshot, journal ownership.Journal, withheld map[intent.Key]*Reason) *Plan {
	return diff(in, s, journal, withheld, nil, nil)
}

// Planner is Diff, or a function that plans with the same arguments.
type Planner = func(*intent.Intent, *observe.Snapshot, ownership.Journal, map[intent.Key]*Reason) *Plan

// DiffRebuild returns a function that returns the plan of Diff. In addition, the plan deletes and creates again every
// sub-interface that has an index in rebuilt and serves an end. This is needed if a sub-interface is missing in VPP's
// table of VLANs, because no observation of VPP shows this.
func DiffRebuild(rebuilt map[uint32]bool) Planner {
	return func(in *intent.Intent, s *observe.Snapshot, journal ownership.Journal, withheld map[intent.Key]*Reason) *Plan {
		return diff(in, s, journal, withheld, nil, rebuilt)
	}
}

// Replan plans again after p was carried out. It plans only for the VLLs for which p had operations (see
// ReplanFor).
func (p *Plan) Replan(in *intent.Intent, s *observe.Snapshot, journal ownership.Journal, withheld map[intent.Key]*Reason) *Plan {
	touched := make(map[string]bool)
	for _, op := range p.Ops {
		touched[op.End.VLL] = true
	}
	return p.ReplanFor(touched)(in, s, journal, withheld)
}

// ReplanFor returns a function that plans for these VLLs after p was carried out. The function assumes that p has
// brought all other VLLs to their intended state, so that only conflicts can have appeared since. This assumption is
// wrong if p blocked an end or an end is withheld now. The function then plans for all VLLs.
func (p *Plan) ReplanFor(vlls map[string]bool) Planner {
	return func(in *intent.Intent, s *observe.Snapshot, journal ownership.Journal, withheld map[intent.Key]*Reason) *Plan {
		if len(p.Blocked) > 0 || len(withheld) > 0 {
			return Diff(in, s, journal, withheld)
		}
		next := diff(in, s, journal, nil, vlls, nil)
		for end := range p.Policed {
			if !vlls[end.VLL] && next.Blocked[end] == nil {
				next.Policed[end] = true
			}
		}
		return next
	}
}

func diff(
	in *intent.Intent, s *observe.Snapshot, journal ownership.Journal, withheld map[intent.Key]*Reason, vlls map[string]bool, rebuilt map[uint32]bool,
) *Plan {
	d := &differ{
		ownerView: findOwners(s, journal), in: in, vlls: vlls, rebuilt: rebuilt,
		present: make(map[intent.Key]int, len(in.Present)), removed: make(map[intent.Key]bool, len(in.Removed)),
		released: make(map[intent.Key]intent.Tombstone),
	}
	for i := range in.Present {
		d.present[in.Present[i].Key] = i
	}
	for _, r := range in.Removed {
		d.removed[r.Key] = true
		if r.Release {
			d.released[r.Key] = r
		}
	}
	// A relabelled interface of a released end is released with the other interfaces, unless the end's
	// policer may still work on it.
	d.relabelled = slices.DeleteFunc(d.relabelled, func(h *EndInterface) bool {
		return d.released[h.End].Release && d.Policers[ownership.PolicerName(h.End)] == nil
	})
	blocked := maps.Clone(withheld)
	if blocked == nil {
		blocked = make(map[intent.Key]*Reason)
	}
	d.blocked = blocked
	maps.Copy(blocked, d.adopt(in))
	for {
		// A blocked end keeps its interfaces. These interfaces may conflict with another end, so repeat until
		// no further end is blocked.
		d.blocked = blocked
		d.findLeaving()
		found := d.findConflicts(in)
		if len(found) == 0 {
			break
		}
		maps.Copy(blocked, found)
	}
	p := &Plan{Blocked: blocked, Owned: d.tagged(), Relabelled: d.relabelled, released: d.released}
	for _, h := range d.endInterfaces {
		if _, named := d.present[h.End]; !named && !d.removed[h.End] {
			p.Quarantined = append(p.Quarantined, h)
		}
	}
	b := d.buildOperations(in)
	p.Ops, p.Policed = b.ops, b.policed
	p.StandingClaims, p.CreationClaims = d.standingClaims(in), d.creationClaims(p.Ops)
	if len(p.CreationClaims) > 0 {
		p.SentInto = b.sentInto()
	}
	return p
}

type differ struct {
	*ownerView
	in      *intent.Intent
	vlls    map[string]bool    // the VLLs that are planned for, nil for all
	rebuilt map[uint32]bool    // indices of sub-interfaces that are rebuilt regardless of their state
	present map[intent.Key]int // index in in.Present
	removed map[intent.Key]bool
	// released are the removed ends whose interfaces are released instead of deleted.
	released map[intent.Key]intent.Tombstone
	blocked  map[intent.Key]*Reason
	leaving  map[uint32]*EndInterface // by interface index: interfaces to delete, and ports to release
}

// planned reports whether this plan covers the end's VLL, and the end is not blocked.
func (d *differ) planned(end intent.Key) bool {
	return (d.vlls == nil || d.vlls[end.VLL]) && d.blocked[end] == nil
}

// findLeaving finds the interfaces to delete and the ports to release: all interfaces of removed ends, and
// the interfaces of present ends that have another key than intended or are to be rebuilt.
func (d *differ) findLeaving() {
	d.leaving = make(map[uint32]*EndInterface)
	leave := func(h *EndInterface) {
		if !d.planned(h.End) || d.released[h.End].Release {
			return
		}
		at, present := d.present[h.End]
		if d.removed[h.End] || present && !d.fits(h, d.in.Present[at]) {
			d.leaving[h.Interface.Index] = h
		}
	}
	if d.vlls == nil {
		for _, h := range d.endInterfaces {
			leave(h)
		}
		return
	}
	for vll := range d.vlls {
		for _, end := range intent.EndsOf(vll) {
			for h := range d.interfacesOf(end) {
				leave(h)
			}
		}
	}
}

// plannedEnds returns the positions in d.in.Present of the ends that this plan covers, in ascending order.
func (d *differ) plannedEnds() (places []int) {
	if d.vlls == nil {
		places = make([]int, 0, len(d.in.Present))
		for at := range d.in.Present {
			if d.blocked[d.in.Present[at].Key] == nil {
				places = append(places, at)
			}
		}
		return places
	}
	for vll := range d.vlls {
		for _, end := range intent.EndsOf(vll) {
			if at, present := d.present[end]; present && d.blocked[end] == nil {
				places = append(places, at)
			}
		}
	}
	slices.Sort(places)
	return places
}

// fits reports whether the end interface has the key that the end requires, and is not to be rebuilt.
func (d *differ) fits(h *EndInterface, end intent.End) bool {
	if h.Tunnel != nil {
		return h.Tunnel.Default && h.Tunnel.Tunnel == end.Tunnel
	}
	switch port := d.ByName(end.Access.Interface); {
	case h.isPort():
		return end.Access.Tagging == intent.Untagged && h.Interface == port
	default:
		sub := h.Interface.Sub
		return port != nil && !d.rebuilt[h.Interface.Index] && end.Access.Tagging != intent.Untagged && sub.Exact == end.Access.Exact && !sub.Wide() &&
			d.subs.at(port.Index, end.Access) == h.Interface
	}
}

// serving returns the interfaces that already serve as the end's access and tunnel. An interface that has to
// be created or taken is nil.
func (d *differ) serving(end intent.End) (access, tunnel *observe.Interface) {
	for h := range d.interfacesOf(end.Key) {
		switch {
		case h.Tunnel == nil && access == nil && d.fits(h, end):
			access = h.Interface
		case h.Tunnel != nil && tunnel == nil && d.fits(h, end):
			tunnel = h.Interface
		}
	}
	return access, tunnel
}
