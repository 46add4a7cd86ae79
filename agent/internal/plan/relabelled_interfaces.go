package plan

import (
	"fmt"
	"hash/fnv"
	"strings"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
)

// Anybody can clear or replace a tag. What was tagged in this run of VPP is still there then, under its index and name
// and with its key, and belongs to its end as long as nobody says otherwise. But an interface that somebody deleted and
// made anew by hand can look the same. So nothing is done to it, and its end is in conflict with it until an operator
// says whose it is (docs/adr/0022).

// fingerprintOf is a number made of an interface's name and all that its creation fixed. Together with the index it
// tells an interface from what comes after it, but for one that is made just like it.
func fingerprintOf(i *observe.Interface, tunnel *observe.Tunnel) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(i.Name)) // a hash takes everything
	var key [64]byte
	bytes := key[:0]
	flag := func(set bool) {
		if set {
			bytes = append(bytes, 1)
		} else {
			bytes = append(bytes, 0)
		}
	}
	number := func(n uint32) { bytes = append(bytes, byte(n>>24), byte(n>>16), byte(n>>8), byte(n)) }
	if tunnel != nil {
		local, remote := tunnel.Local.As16(), tunnel.Remote.As16()
		bytes = append(append(bytes, local[:]...), remote[:]...)
		number(tunnel.VNI)
		if tunnel.GREKey != 0 { // what was noted before there were keys stays true
			number(tunnel.GREKey)
		}
		if tunnel.Table != 0 { // nor what was before there were tables
			number(tunnel.Table)
		}
		flag(tunnel.Default)
		bytes = append(bytes, tunnel.Encapsulation...)
	} else {
		number(i.Sup)
		number(uint32(i.Sub.Outer)<<16 | uint32(i.Sub.Inner))
		flag(i.Sub.Dot1ad)
		flag(i.Sub.Exact)
		flag(i.Sub.Wide())
		bytes = append(bytes, i.Sub.Tags)
	}
	_, _ = sum.Write(bytes)
	return sum.Sum64()
}

// relabelledOf finds the end for which an interface without a tag of the agent was made.
func (o *ownerView) relabelledOf(i *observe.Interface, tagged ownership.Tagged) *Holding {
	mark, known := tagged[i.Index]
	tunnel := o.TunnelAt(i.Index)
	if !known || tunnel == nil && !i.IsSub() || mark.Identity != fingerprintOf(i, tunnel) {
		return nil
	}
	return &Holding{End: mark.Key, Revision: mark.Revision, Interface: i, Tunnel: tunnel}
}

// TagChanges compares what bears the agent's tag with what is known to have borne it: marks that are new or other, and
// indices of interfaces that are no more or that the agent has let go of. Ports are not made by the agent, and are known by their claims.
func (p *Plan) TagChanges(s *observe.Snapshot, known ownership.Tagged) (marked ownership.Tagged, gone []uint32) {
	marked = make(ownership.Tagged)
	stays := make(map[uint32]bool, len(p.Owned)+len(p.Relabelled))
	for _, h := range p.Relabelled {
		stays[h.Interface.Index] = true
	}
	for _, h := range p.Owned {
		stays[h.Interface.Index] = true
		if h.Claim != nil || h.isPort() {
			continue
		}
		mark := ownership.Mark{Tag: ownership.Tag{Key: h.End, Revision: h.Revision}, Identity: fingerprintOf(h.Interface, h.Tunnel)}
		if known[h.Interface.Index] != mark {
			marked[h.Interface.Index] = mark
		}
	}
	for index, mark := range known {
		if s.ByIndex(index) == nil || p.released[mark.Key].Release && !stays[index] {
			gone = append(gone, index)
		}
	}
	return marked, gone
}

// relabelledConflicts: while something of an end is relabelled, all of its VLL on this router stays as it is. Also of
// ends that are not planned for: that is no less true.
func (d *differ) relabelledConflicts(block func(intent.Key, *Reason)) {
	found := make(map[intent.Key][]*Holding)
	var ends []intent.Key
	for _, h := range d.relabelled {
		if found[h.End] == nil {
			ends = append(ends, h.End)
		}
		found[h.End] = append(found[h.End], h)
	}
	for _, end := range ends {
		reason := relabelled(found[end])
		other := *reason
		other.Message = "the other end: " + reason.Message
		if d.named(end) {
			block(end, reason)
		}
		if d.named(end.Other()) {
			block(end.Other(), &other)
		}
	}
}

func (d *differ) named(end intent.Key) bool {
	_, present := d.present[end]
	return present || d.removed[end]
}

func relabelled(all []*Holding) *Reason {
	var found []string
	for _, h := range all {
		found = append(found, fmt.Sprintf("%s, which has %s", Describe(h.Interface), tagNow(h.Interface)))
	}
	return conflict("relabelled", Describe(all[0].Interface),
		"somebody took the agent's tag from what was made for this end: %s. Nothing is done until it is claimed again or let go of on the router "+
			"(longline-agent claim, longline-agent release)", strings.Join(found, "; "))
}

func tagNow(i *observe.Interface) string {
	if i.Tag == "" {
		return "no tag now"
	}
	return fmt.Sprintf("the tag %q now", i.Tag)
}

// notOurs says why an interface that is in the way is not touched.
func (d *differ) notOurs(i *observe.Interface) string {
	for _, h := range d.relabelled {
		if h.Interface == i {
			return fmt.Sprintf("which was made for VLL end %s and relabelled since", h.End)
		}
	}
	if linux, paired := d.LCP[i.Index]; paired {
		return "which the agent did not make and which is paired with the Linux interface " + linux
	}
	return "which the agent did not make"
}

// Reclaim puts the tag back that the holding bore.
func (h *Holding) Reclaim() Op {
	tag, i := ownership.Tag{Key: h.End, Revision: h.Revision}.String(), h.Interface
	return Op{
		Stage: Tag, End: h.End, Action: SetTag{Interface: RefTo(i), Tag: tag}, Why: "an operator claimed it again",
		Drift: Drift{Object: i.Name, Field: "tag", Desired: tag, Actual: i.Tag},
	}
}

// TakePolicerOff takes the end's policer off what is let go of; it would be deleted under it with the end. policed: one
// works there.
func (h *Holding) TakePolicerOff(s *observe.Snapshot, policed bool) (op Op, needed bool) {
	name, i := ownership.PolicerName(h.End), h.Interface
	if op, needed := h.takeTableOff(s); needed {
		return op, true
	}
	if !policed || s.Policers[name] == nil {
		return Op{}, false
	}
	return Op{
		Stage: Detach, End: h.End, Action: SetPolicing{name, RefTo(i), false}, Why: "an operator let go of it",
		Drift: Drift{Object: i.Name, Field: "policed", Desired: "false", Actual: "true"},
	}, true
}

// takeTableOff is TakePolicerOff where a classify table is bound.
func (h *Holding) takeTableOff(s *observe.Snapshot) (op Op, needed bool) {
	table, bound := s.Bound[h.Interface.Index]
	t := s.Tables[table]
	if !bound || t == nil {
		return Op{}, false
	}
	return Op{
		Stage: Detach, End: h.End, Action: SetClassifier{tableAt(t), RefTo(h.Interface), false}, Why: "an operator let go of it",
		Drift: Drift{Object: h.Interface.Name, Field: "policed", Desired: "false", Actual: "true"},
	}, true
}
