package plan

import (
	"fmt"
	"hash/fnv"
	"strings"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
)

// Any user of VPP can clear or replace a tag. The interface keeps its index, its name and its key. So the
// agent still recognizes an interface that it tagged in this run of VPP, and the interface belongs to its end
// until an operator decides otherwise. However, another user may have deleted the interface and created an
// identical one. Therefore the agent does not change the interface. Its end is in conflict until an operator
// decides who owns the interface (docs/adr/0022).

// fingerprintOf returns a hash of an interface's name and of all properties that are fixed at its creation.
// Together with the index, the hash distinguishes the interface from later interfaces with the same index,
// unless a later interface has the same properties.
func fingerprintOf(i *observe.Interface, tunnel *observe.Tunnel) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(i.Name)) // a hash accepts any input
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
		if tunnel.GREKey != 0 { // so fingerprints that were recorded before the agent supported GRE keys stay valid
			number(tunnel.GREKey)
		}
		if tunnel.Table != 0 { // so fingerprints that were recorded before the agent supported underlay tables stay valid
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

// relabelledOf returns an end interface for an interface that the agent has tagged in this run of VPP and that no
// longer has the agent's tag. For other interfaces it returns nil.
func (o *ownerView) relabelledOf(i *observe.Interface, tagged ownership.Tagged) *EndInterface {
	mark, known := tagged[i.Index]
	tunnel := o.TunnelAt(i.Index)
	if !known || tunnel == nil && !i.IsSub() || mark.Identity != fingerprintOf(i, tunnel) {
		return nil
	}
	return &EndInterface{End: mark.Key, Revision: mark.Revision, Interface: i, Tunnel: tunnel}
}

// TagChanges compares the interfaces that have the agent's tag with the recorded interfaces (known). It
// returns new or changed tags, and the indices of recorded interfaces that no longer exist or that the agent
// has released. It omits ports, because the agent does not create ports, and claims record their use.
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

// relabelledConflicts blocks all ends of a VLL on this router while one of its interfaces is relabelled. This
// includes ends that this plan does not cover.
func (d *differ) relabelledConflicts(block func(intent.Key, *Reason)) {
	found := make(map[intent.Key][]*EndInterface)
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

func relabelled(all []*EndInterface) *Reason {
	var found []string
	for _, h := range all {
		found = append(found, fmt.Sprintf("%s, which has %s", Describe(h.Interface), tagNow(h.Interface)))
	}
	return conflict("relabelled", Describe(all[0].Interface),
		"interfaces of this end no longer have the agent's tag: %s. Nothing is done until an operator claims or releases them on the router "+
			"(longline-agent claim, longline-agent release)", strings.Join(found, "; "))
}

func tagNow(i *observe.Interface) string {
	if i.Tag == "" {
		return "no tag now"
	}
	return fmt.Sprintf("the tag %q now", i.Tag)
}

// notOurs explains why a conflicting interface is not changed.
func (d *differ) notOurs(i *observe.Interface) string {
	for _, h := range d.relabelled {
		if h.Interface == i {
			return fmt.Sprintf("which was created for VLL end %s and relabelled since", h.End)
		}
	}
	if linux, paired := d.LCP[i.Index]; paired {
		return "which the agent did not make and which is paired with the Linux interface " + linux
	}
	return "which the agent did not make"
}

// Reclaim returns the operation that restores the interface's tag.
func (h *EndInterface) Reclaim() Op {
	tag, i := ownership.Tag{Key: h.End, Revision: h.Revision}.String(), h.Interface
	return Op{
		Stage: Tag, End: h.End, Action: SetTag{Interface: RefTo(i), Tag: tag}, Why: "an operator claimed it again",
		Drift: Drift{Object: i.Name, Field: "tag", Desired: tag, Actual: i.Tag},
	}
}

// TakePolicerOff returns the operation that stops the end's policer on an interface that is released. Without
// this operation, the policer could be deleted together with the end while the policer is still applied to
// the interface. policed must be true if a policer works on the interface. needed is false if there is
// nothing to stop.
func (h *EndInterface) TakePolicerOff(s *observe.Snapshot, policed bool) (op Op, needed bool) {
	i, name := h.Interface, ownership.PolicerName(h.End)
	var stop Action
	if t := s.BoundTable(i.Index); t != nil {
		stop = SetClassifier{tableAt(t), RefTo(i), false}
	} else if policed && s.Policers[name] != nil {
		stop = SetPolicing{name, RefTo(i), false}
	} else {
		return Op{}, false
	}
	return Op{
		Stage: Detach, End: h.End, Action: stop, Why: "an operator released it",
		Drift: Drift{Object: i.Name, Field: "policed", Desired: "false", Actual: "true"},
	}, true
}
