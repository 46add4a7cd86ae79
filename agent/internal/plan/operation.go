// Package plan compares what is wanted with what is there and says what to do, in order. It does no I/O.
package plan

import (
	"cmp"
	"slices"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
)

// Stage orders operations: everything of one stage is done before the next begins.
type Stage int

const (
	Detach  Stage = iota // undo cross-connects of what is about to be deleted
	Delete               // delete, and let go of ports
	Create               // make what is missing
	Tag                  // mark it as the agent's
	Set                  // MTU, tag rewrite
	Connect              // cross-connect both ways
	Police               // hold to the bandwidth profile
	Up                   // admin state
)

func (s Stage) String() string {
	return [...]string{"detach", "delete", "create", "tag", "set", "connect", "police", "up"}[s]
}

// Stages are all stages in order.
var Stages = []Stage{Detach, Delete, Create, Tag, Set, Connect, Police, Up}

// Role is what an interface is to its end.
type Role string

const (
	Access Role = "access"
	Tunnel Role = "tunnel"
)

// Made names an interface that an earlier operation of the plan creates.
type Made struct {
	End  intent.Key
	Role Role
}

// Ref is an interface that is there (Index) or will be (Made; then Index is observe.NoIndex).
type Ref struct {
	Index uint32
	Made  Made
	Name  string // for what will be there, the name it is expected to get
}

// At is the index of the interface, observe.NoIndex if it was not made.
func (r Ref) At(made map[Made]uint32) uint32 {
	if r.Index != observe.NoIndex {
		return r.Index
	}
	if index, ok := made[r.Made]; ok {
		return index
	}
	return observe.NoIndex
}

// RefTo refers to an interface that is there.
func RefTo(i *observe.Interface) Ref { return Ref{Index: i.Index, Name: i.Name} }

// Op is one message to VPP.
type Op struct {
	Stage  Stage
	End    intent.Key
	Action Action
	Why    string
	// Drift is the difference that the operation repairs.
	Drift Drift
	// Follows: what it changes follows something that an operator may choose, such as a port's MTU. It repairs nobody's change.
	Follows bool

	rank int // order within a stage and an end
}

// Drift is one field of one object that is not as it should be.
type Drift struct {
	Object, Field, Desired, Actual string
}

// order makes plans reproducible. Operations are large, so their places are sorted, and each is moved once.
func order(ops []Op) []Op {
	places := make([]int, len(ops))
	for n := range places {
		places[n] = n
	}
	slices.SortFunc(places, func(m, n int) int {
		a, b := &ops[m], &ops[n]
		if a.Stage != b.Stage || a.rank != b.rank {
			return cmp.Or(cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.rank, b.rank))
		}
		return cmp.Or(a.End.Compare(b.End), cmp.Compare(m, n))
	})
	ordered := make([]Op, 0, len(ops))
	for _, n := range places {
		ordered = append(ordered, ops[n])
	}
	return ordered
}
