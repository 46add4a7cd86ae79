package plan

import (
	"maps"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/own"
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
	// Standing are the claims that ownership rests on now, Creations those of what the plan is about to make.
	// Both have to be on disk before the plan is carried out.
	Standing, Creations []own.Claim
}

// Diff plans how to get from what is observed to what is intended. Guarantees:
//
//   - What the agent does not own is in no operation, but for the admin-up of a port that carries a
//     sub-interface which has to come up. A port is never taken down, but as the access of a whole-port
//     VLL that is to be down.
//   - An end that cannot be made as wanted is left wholly as it is, with a reason.
//   - What is owned and not named by the intent is left forwarding.
//   - Only a changed key recreates; everything else changes in place.
//
// withheld are ends that are not to be touched now, each with its reason; they count as blocked.
func Diff(in *intent.Intent, s *observe.Snapshot, journal own.Journal, withheld map[intent.Key]*Reason) *Plan {
	d := &differ{estate: survey(s, journal), in: in, present: make(map[intent.Key]int, len(in.Present)), removed: make(map[intent.Key]bool, len(in.Removed))}
	for i := range in.Present {
		d.present[in.Present[i].Key] = i
	}
	for _, r := range in.Removed {
		d.removed[r.Key] = true
	}
	blocked := maps.Clone(withheld)
	if blocked == nil {
		blocked = make(map[intent.Key]*Reason)
	}
	for {
		// A blocked end keeps what it holds, which may be in the way of another one: look again until
		// nothing more is blocked.
		d.blocked = blocked
		d.leave()
		found := d.obstacles(in)
		if len(found) == 0 {
			break
		}
		maps.Copy(blocked, found)
	}
	p := &Plan{Blocked: blocked, Owned: d.holdings}
	for _, h := range d.holdings {
		if _, named := d.present[h.End]; !named && !d.removed[h.End] {
			p.Quarantined = append(p.Quarantined, h)
		}
	}
	p.Ops, p.Policed = d.operations(in)
	p.Standing, p.Creations = d.standing(in), d.creations(p.Ops)
	return p
}

type differ struct {
	*estate
	in      *intent.Intent
	present map[intent.Key]int // place in in.Present
	removed map[intent.Key]bool
	blocked map[intent.Key]*Reason
	leaving map[uint32]*Holding // by interface index: what goes, or for a port, is let go
}

// leave finds what goes: everything of removed ends, and of present ends what has another key than wanted.
func (d *differ) leave() {
	d.leaving = make(map[uint32]*Holding)
	for _, h := range d.holdings {
		if d.blocked[h.End] != nil {
			continue
		}
		at, present := d.present[h.End]
		if d.removed[h.End] || present && !d.fits(h, d.in.Present[at]) {
			d.leaving[h.Interface.Index] = h
		}
	}
}

// fits reports whether the holding has the key that the end wants.
func (d *differ) fits(h *Holding, end intent.End) bool {
	switch port := d.ByName(end.Access.Interface); {
	case h.Tunnel != nil:
		return h.Tunnel.Default && h.Tunnel.Tunnel == end.Tunnel
	case h.isPort():
		return end.Access.Tagging == intent.Untagged && h.Interface == port
	default:
		sub := h.Interface.Sub
		return port != nil && end.Access.Tagging != intent.Untagged && sub.Exact == end.Access.Exact && !sub.Wide &&
			d.subs[selects(port.Index, end.Access)] == h.Interface
	}
}

// access is the interface that already serves as the end's access, nil when it has to be made or taken.
func (d *differ) access(end intent.End) *observe.Interface {
	return d.held(end, func(h *Holding) bool { return h.Tunnel == nil })
}

// tunnel is the interface of the end's tunnel, nil when it has to be made.
func (d *differ) tunnel(end intent.End) *observe.Interface {
	return d.held(end, func(h *Holding) bool { return h.Tunnel != nil })
}

func (d *differ) held(end intent.End, which func(*Holding) bool) *observe.Interface {
	for h := range d.of(end.Key) {
		if which(h) && d.fits(h, end) {
			return h.Interface
		}
	}
	return nil
}
