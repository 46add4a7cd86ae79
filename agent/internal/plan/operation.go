// Package plan compares the intent with the observed state and plans the operations, in order. It does no
// I/O.
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
	Detach  Stage = iota // remove cross-connects of interfaces that are about to be deleted
	Delete               // delete interfaces, release ports
	Create               // create missing objects
	Tag                  // mark them as the agent's
	Set                  // MTU, tag rewrite
	Connect              // cross-connect in both directions
	Police               // enforce the bandwidth profile
	Up                   // admin state
)

func (s Stage) String() string {
	return [...]string{"detach", "delete", "create", "tag", "set", "connect", "police", "up"}[s]
}

// Stages are all stages in order.
var Stages = []Stage{Detach, Delete, Create, Tag, Set, Connect, Police, Up}

// Role is the function of an interface for its end.
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

// Ref is an existing interface (Index), or one that the plan creates (Made; then Index is observe.NoIndex).
type Ref struct {
	Index uint32
	Made  Made
	Name  string // for an interface that the plan creates, its expected name
}

// At returns the index of the interface, observe.NoIndex if it was not created.
func (r Ref) At(made map[Made]uint32) uint32 {
	if r.Index != observe.NoIndex {
		return r.Index
	}
	if index, ok := made[r.Made]; ok {
		return index
	}
	return observe.NoIndex
}

// RefTo returns a reference to an existing interface.
func RefTo(i *observe.Interface) Ref { return Ref{Index: i.Index, Name: i.Name} }

// Op is one message to VPP.
type Op struct {
	Stage  Stage
	End    intent.Key
	Action Action
	Why    string
	// Drift is the difference that the operation repairs.
	Drift Drift
	// Follows: the operation adapts to a setting that an operator may choose, such as a port's MTU. It
	// repairs no foreign change.
	Follows bool

	rank int // order within a stage and an end
}

// Drift is one field of one object with another value than intended.
type Drift struct {
	Object, Field, Desired, Actual string
}

// order makes plans reproducible. Operations are large, so their indices are sorted, and each operation is
// moved once.
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
