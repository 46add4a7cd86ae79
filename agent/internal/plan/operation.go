// Package plan compares the intent with the observed state, and plans the operations and their order. It does
// no I/O.
package plan

import (
	"cmp"
	"fmt"
	"slices"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
)

// Stage determines the order of operations: all operations of a stage are carried out before the next stage
// begins.
type Stage int

const (
	Detach  Stage = iota // remove cross-connects of interfaces that are about to be deleted
	Delete               // delete interfaces, release ports
	Create               // create missing objects
	Tag                  // tag the new objects as the agent's
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

// Ref refers to an interface. Index identifies an existing interface. Made identifies an interface that the
// plan creates; in this case Index is observe.NoIndex.
type Ref struct {
	Index uint32
	Made  Made
	Name  string // for an interface that the plan creates, its expected name
}

// At returns the index of the interface, or observe.NoIndex if the interface was not created.
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
	// Follows means that the operation follows a setting that an operator may choose, such as a port's MTU.
	// Such an operation does not repair drift.
	Follows bool

	rank int // order within a stage and an end
}

// Drift is one field of one object whose actual value differs from the intended value.
type Drift struct {
	Object  string `json:"object"`
	Field   string `json:"field"`
	Desired string `json:"desired"`
	Actual  string `json:"actual"`
}

// order sorts the operations by stage, rank and end, so that plans are reproducible. Operations are large in
// memory, so order sorts their indices and then moves each operation only once.
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

// Reason says why an end is not as intended. The values of Status and Code are described in
// docs/reference/agent-api.md.
type Reason struct {
	Status     string
	Code       string
	Message    string
	Object     string // "" if there is none
	Retval     int32  // 0 if no request was sent to VPP
	VPPMessage string
	// Drift is a setting of another user's object that an operator has to correct, or nil if there is no such
	// setting.
	Drift *Drift
}

func pending(code, object, format string, args ...any) *Reason {
	return &Reason{Status: "pending", Code: code, Object: object, Message: fmt.Sprintf(format, args...)}
}

func conflict(code, object, format string, args ...any) *Reason {
	return &Reason{Status: "conflict", Code: code, Object: object, Message: fmt.Sprintf(format, args...)}
}

// Describe returns the name and the index of an interface, for messages.
func Describe(i *observe.Interface) string {
	return fmt.Sprintf("%s (sw_if_index %d)", i.Name, i.Index)
}
