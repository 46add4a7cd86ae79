// Package foundlines finds the point-to-point circuits that other users have configured in a VPP. It reads
// only a snapshot and sends nothing to VPP.
package foundlines

import (
	"cmp"
	"slices"

	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/plan"
)

// Side is one side of a circuit: a tunnel, or an attachment circuit (RFC 4664), which is a whole port or a
// sub-interface.
type Side struct {
	*observe.Interface
	Port   *observe.Interface // the port itself, or the parent of the sub-interface; nil for a tunnel and for an unknown port
	Tunnel *observe.Tunnel    // nil for an attachment circuit
}

// Circuit has two interfaces that do not belong to the agent. They are cross-connected in at least one
// direction.
type Circuit struct {
	Near Side
	// Far.Interface is nil if Near is a tunnel without a cross-connect.
	Far Side
	// Out: Near's frames are sent to Far. In: Far's frames are sent to Near.
	Out, In bool
}

// Circuits returns the circuits of other users, sorted by the index of Near, then by the index of Far. It
// includes the tunnels of other users that are neither cross-connected nor in a bridge. It omits a circuit if
// the plan lists one of its sides as an interface of the agent. A relabelled interface also counts as an
// interface of the agent. Bridged interfaces form no circuit. If a circuit has an attachment circuit and a
// tunnel, the attachment circuit is Near. Otherwise the side with the lower index is Near.
func Circuits(s *observe.Snapshot, todo *plan.Plan) []Circuit {
	ours := make(map[uint32]bool, len(todo.Owned))
	for _, interfaces := range [][]*plan.EndInterface{todo.Owned, todo.Relabelled} {
		for _, h := range interfaces {
			ours[h.Interface.Index] = true
		}
	}
	type pair struct{ near, far uint32 }
	found := make(map[pair]*Circuit)
	used := make(map[uint32]bool)
	for from, to := range s.Connects {
		used[from], used[to] = true, true
		source, target := s.ByIndex(from), s.ByIndex(to)
		if ours[from] || ours[to] || source == nil || target == nil {
			continue
		}
		near, far, out := sideOf(s, source), sideOf(s, target), true
		if comesAfter(near, far) {
			near, far, out = far, near, false
		}
		key := pair{near.Index, far.Index}
		c := found[key]
		if c == nil {
			c = &Circuit{Near: near, Far: far}
			found[key] = c
		}
		c.Out, c.In = c.Out || out, c.In || !out
	}
	circuits := make([]Circuit, 0, len(found))
	for _, c := range found {
		circuits = append(circuits, *c)
	}
	for _, t := range s.Tunnels {
		_, bridged := s.Bridged[t.Index]
		if i := s.ByIndex(t.Index); i != nil && !ours[t.Index] && !used[t.Index] && !bridged {
			circuits = append(circuits, Circuit{Near: sideOf(s, i)})
		}
	}
	slices.SortFunc(circuits, func(a, b Circuit) int {
		return cmp.Or(cmp.Compare(a.Near.Index, b.Near.Index), cmp.Compare(farIndex(a), farIndex(b)))
	})
	return circuits
}

func sideOf(s *observe.Snapshot, i *observe.Interface) Side {
	if t := s.TunnelAt(i.Index); t != nil {
		return Side{Interface: i, Tunnel: t}
	}
	return Side{Interface: i, Port: s.ByIndex(i.Sup)}
}

// comesAfter reports whether b is the near side of a circuit between a and b.
func comesAfter(a, b Side) bool {
	if (a.Tunnel == nil) != (b.Tunnel == nil) {
		return a.Tunnel != nil
	}
	return a.Index > b.Index
}

func farIndex(c Circuit) uint32 {
	if c.Far.Interface == nil {
		return observe.NoIndex
	}
	return c.Far.Index
}
