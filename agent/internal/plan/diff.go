package plan

import (
	"maps"
	"slices"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
)

// Plan is what to do, and what cannot be done.
type Plan struct {
	Ops []Op // in order
	// Blocked are the ends for which nothing is done, each with its reason.
	Blocked map[intent.Key]*Reason
	// Policed are the ends whose bandwidth profile VPP enforces now.
	Policed map[intent.Key]bool
	// Owned is everything of the agent's in VPP; Quarantined the part that the intent does not name.
	Owned, Quarantined []*Holding
	// Relabelled is what the agent made and tagged and what bears its tag no longer.
	Relabelled []*Holding
	// SentInto are indices of interfaces that are gone, or go with this plan, and into which somebody sends all the
	// same: a new interface that gets such an index must not be put to use.
	SentInto map[uint32]*Reason
	// StandingClaims are the claims that ownership rests on now, CreationClaims those of what the plan is about to
	// make. Both have to be on disk before the plan is carried out.
	StandingClaims, CreationClaims []ownership.Claim

	released map[intent.Key]intent.Tombstone // ends that are let go of
}

// KeptDown are the ends whose port the agent has shut for the far end's link and not set up again, and the port's name; where
// the end is still to be kept down, the port may be up yet.
func (p *Plan) KeptDown() map[intent.Key]string {
	kept := make(map[intent.Key]string)
	for _, claim := range p.StandingClaims {
		if claim.LinkLoss && claim.Port != "" {
			kept[claim.Key()] = claim.Port
		}
	}
	return kept
}

// MembersKeptDown are the names of the members of bonds that the agent has shut for the far end's link and not set up again.
func (p *Plan) MembersKeptDown() (names []string) {
	for _, claim := range p.StandingClaims {
		if claim.Member != "" {
			names = append(names, claim.Member)
		}
	}
	return names
}

// Diff plans how to get from what is observed to what is intended. Guarantees:
//
//   - What the agent does not own is in no operation, but for the admin-up of a port that carries a
//     sub-interface which has to come up. A port is never taken down, but as the access of a whole-port
//     VLL that is to be down, or as the member of such a bond; when that goes, the port comes up again if it was. And a classify table of the agent's is
//     taken off whatever got the index of the access that it was bound to.
//   - An end that cannot be made as wanted is left wholly as it is, with a reason. But a port that the agent shut
//     because of the far end's link is set up as soon as somebody else uses it, or the intent does not want it down.
//   - What is owned and not named by the intent is left forwarding, and so is what is let go of.
//   - Of an end that is adopted only tags are changed.
//   - Only a changed key recreates (and DiffRebuild); everything else changes in place.
//
// withheld are ends that are not to be touched now, each with its reason; they count as blocked.
func Diff(in *intent.Intent, s *observe.Snapshot, journal ownership.Journal, withheld map[intent.Key]*Reason) *Plan {
	return diff(in, s, journal, withheld, nil, nil)
}

// DiffRebuild is Diff that also rebuilds these sub-interfaces, by index, as far as they serve ends: VPP may have lost a
// sub-interface from its table of VLANs, and nothing that can be read of it shows that.
func DiffRebuild(
	in *intent.Intent, s *observe.Snapshot, journal ownership.Journal, withheld map[intent.Key]*Reason, rebuilt map[uint32]bool,
) *Plan {
	return diff(in, s, journal, withheld, nil, rebuilt)
}

// Replan plans once p is carried out: for the ends that p did something for.
func (p *Plan) Replan(in *intent.Intent, s *observe.Snapshot, journal ownership.Journal, withheld map[intent.Key]*Reason) *Plan {
	touched := make(map[string]bool)
	for _, op := range p.Ops {
		touched[op.End.VLL] = true
	}
	return p.ReplanFor(touched, in, s, journal, withheld)
}

// ReplanFor plans for these VLLs once p is carried out. The others are taken to be as p left them, but for what has
// come in their way since; that is known only if p left nobody out, else it is Diff.
func (p *Plan) ReplanFor(
	vlls map[string]bool, in *intent.Intent, s *observe.Snapshot, journal ownership.Journal, withheld map[intent.Key]*Reason,
) *Plan {
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
	// What somebody relabelled is let go of with the rest; but not where the end's policer may still work on it.
	d.relabelled = slices.DeleteFunc(d.relabelled, func(h *Holding) bool {
		return d.released[h.End].Release && d.Policers[ownership.PolicerName(h.End)] == nil
	})
	blocked := maps.Clone(withheld)
	if blocked == nil {
		blocked = make(map[intent.Key]*Reason)
	}
	d.blocked = blocked
	maps.Copy(blocked, d.adopt(in))
	for {
		// A blocked end keeps what it holds, which may be in the way of another one: look again until
		// nothing more is blocked.
		d.blocked = blocked
		d.findLeaving()
		found := d.findConflicts(in)
		if len(found) == 0 {
			break
		}
		maps.Copy(blocked, found)
	}
	p := &Plan{Blocked: blocked, Owned: d.tagged(), Relabelled: d.relabelled, released: d.released}
	for _, h := range d.holdings {
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
	vlls    map[string]bool    // those that are planned for, nil for all
	rebuilt map[uint32]bool    // sub-interfaces that are rebuilt whatever they look like, by index
	present map[intent.Key]int // place in in.Present
	removed map[intent.Key]bool
	// released are the removed ends that are let go of.
	released map[intent.Key]intent.Tombstone
	blocked  map[intent.Key]*Reason
	leaving  map[uint32]*Holding // by interface index: what goes, or for a port, is let go
}

// isCarriedOut reports whether what the intent says of the end is carried out: it says something, and nothing is in the way.
func (d *differ) isCarriedOut(end intent.Key) bool {
	_, present := d.present[end]
	return d.blocked[end] == nil && (present || d.removed[end])
}

// planned reports whether the end is planned for.
func (d *differ) planned(end intent.Key) bool {
	return (d.vlls == nil || d.vlls[end.VLL]) && d.blocked[end] == nil
}

// findLeaving finds what goes: everything of removed ends, and of present ends what has another key than wanted or is to
// be rebuilt.
func (d *differ) findLeaving() {
	d.leaving = make(map[uint32]*Holding)
	leave := func(h *Holding) {
		if !d.planned(h.End) || d.released[h.End].Release {
			return
		}
		at, present := d.present[h.End]
		if d.removed[h.End] || present && !d.fits(h, d.in.Present[at]) {
			d.leaving[h.Interface.Index] = h
		}
	}
	if d.vlls == nil {
		for _, h := range d.holdings {
			leave(h)
		}
		return
	}
	for vll := range d.vlls {
		for _, end := range intent.EndsOf(vll) {
			for h := range d.holdingsOf(end) {
				leave(h)
			}
		}
	}
}

// plannedEnds are the places in in.Present of the ends that are planned for, in order.
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

// fits reports whether the holding has the key that the end wants, and may stay.
func (d *differ) fits(h *Holding, end intent.End) bool {
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

// serving are the interfaces that serve as the end's access and tunnel already; nil for what has to be made or taken.
func (d *differ) serving(end intent.End) (access, tunnel *observe.Interface) {
	for h := range d.holdingsOf(end.Key) {
		switch {
		case h.Tunnel == nil && access == nil && d.fits(h, end):
			access = h.Interface
		case h.Tunnel != nil && tunnel == nil && d.fits(h, end):
			tunnel = h.Interface
		}
	}
	return access, tunnel
}
