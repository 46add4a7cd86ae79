// Package plan compares the intent with the observed state, and plans the operations and their order. It does
// no I/O.
package plan

import (
	"cmp"
	"fmt"
	"slices"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"

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

// VPP's tag rewrite operations (l2_vtr.h).
const (
	PopOne = 3
	PopTwo = 4
)

// Action is the change that an operation makes. Encode returns VPP's API message, and CLI the equivalent CLI command.
type Action interface {
	Encode(Created) api.Message
	CLI() string
	// Target returns the interface that the action changes or creates.
	Target() Ref
}

// Created has the indices of objects that earlier operations created.
type Created struct {
	Interfaces map[Made]uint32
	// Policer and Table are the indices of the end's policer and classify table, or observe.NoIndex.
	Policer, Table uint32
}

type swIfIndex = interface_types.InterfaceIndex

func (c Created) at(ref Ref) swIfIndex { return swIfIndex(ref.At(c.Interfaces)) }

// Message returns the name of the operation's API message. Only the type of the encoded message counts, so the
// indices may be wrong.
func (op Op) Message() string { return op.Action.Encode(Created{}).GetMessageName() }

// names returns the interfaces that must not have changed since the plan was made. These are the interfaces that
// the message names by index. For a deletion by key, names also returns the interface with that key.
func (op Op) names() []Ref {
	switch a := op.Action.(type) {
	case CreateSub:
		return []Ref{a.Port}
	case SetConnect:
		return []Ref{a.From, a.To}
	case CreateTunnel, AddPolicer, UpdatePolicer, DeletePolicer, AddTable, DeleteTable, SetSession:
		return nil
	case DeleteSub, DeleteTunnel, SetTag, SetMTU, SetRewrite, ClearConnect, SetAdmin, SetPolicing, SetClassifier:
		return []Ref{op.Action.Target()}
	}
	panic(fmt.Sprintf("the interfaces of %T are not declared", op.Action))
}

type (
	// CreateSub creates a sub-interface on a port.
	CreateSub struct {
		Port   Ref
		ID     uint32
		Access intent.Access
		Sub    Ref
	}
	// DeleteSub deletes a sub-interface.
	DeleteSub struct{ Sub Ref }
	// CreateTunnel creates a tunnel.
	CreateTunnel struct {
		Tunnel    intent.Tunnel
		Interface Ref
	}
	// DeleteTunnel deletes a tunnel.
	DeleteTunnel struct {
		Tunnel    intent.Tunnel
		Interface Ref
	}
	// SetTag tags an interface. An empty Tag clears the tag, which releases the interface.
	SetTag struct {
		Interface Ref
		Tag       string
	}
	// SetMTU sets the L3 MTU (bytes). A GRE TEB tunnel applies it to whole Ethernet frames.
	SetMTU struct {
		Interface Ref
		MTU       uint32
	}
	// SetRewrite sets the tag rewrite of an interface: VPP pops VLAN tags of received frames, and pushes them on
	// sent frames. Pop is PopOne, PopTwo, or 0 for no rewrite.
	SetRewrite struct {
		Interface Ref
		Pop       uint32
	}
	// SetConnect makes VPP forward all frames that it receives on the interface From to the interface To.
	SetConnect struct{ From, To Ref }
	// ClearConnect removes the cross-connect from From to To.
	ClearConnect struct{ From, To Ref }
	// SetAdmin sets the admin state.
	SetAdmin struct {
		Interface Ref
		Up        bool
	}
)

func (a CreateSub) Target() Ref    { return a.Sub }
func (a DeleteSub) Target() Ref    { return a.Sub }
func (a CreateTunnel) Target() Ref { return a.Interface }
func (a DeleteTunnel) Target() Ref { return a.Interface }
func (a SetTag) Target() Ref       { return a.Interface }
func (a SetMTU) Target() Ref       { return a.Interface }
func (a SetRewrite) Target() Ref   { return a.Interface }
func (a SetConnect) Target() Ref   { return a.From }
func (a ClearConnect) Target() Ref { return a.From }
func (a SetAdmin) Target() Ref     { return a.Interface }

func (a CreateSub) Encode(c Created) api.Message {
	flags := interface_types.SUB_IF_API_FLAG_ONE_TAG
	if a.Access.Tagging.Tags() == 2 {
		flags = interface_types.SUB_IF_API_FLAG_TWO_TAGS
	}
	if a.Access.Tagging == intent.Dot1ad {
		flags |= interface_types.SUB_IF_API_FLAG_DOT1AD
	}
	if a.Access.Exact {
		flags |= interface_types.SUB_IF_API_FLAG_EXACT_MATCH
	}
	return &interfaces.CreateSubif{
		SwIfIndex: c.at(a.Port), SubID: a.ID, SubIfFlags: flags, OuterVlanID: a.Access.Outer, InnerVlanID: a.Access.Inner,
	}
}

func (a CreateSub) CLI() string {
	tags := fmt.Sprintf("dot1q %d", a.Access.Outer)
	switch a.Access.Tagging {
	case intent.QinQ:
		tags = fmt.Sprintf("dot1q %d inner-dot1q %d", a.Access.Outer, a.Access.Inner)
	case intent.Dot1ad:
		tags = fmt.Sprintf("dot1ad %d inner-dot1q %d", a.Access.Outer, a.Access.Inner)
	}
	if a.Access.Exact {
		tags += " exact-match"
	}
	return fmt.Sprintf("create sub-interfaces %s %d %s", a.Port.Name, a.ID, tags)
}

func (a DeleteSub) Encode(c Created) api.Message {
	return &interfaces.DeleteSubif{SwIfIndex: c.at(a.Sub)}
}

func (a DeleteSub) CLI() string { return "delete sub-interface " + a.Sub.Name }

func (a CreateTunnel) Encode(Created) api.Message { return a.Tunnel.Kind().AddDel(a.Tunnel, true) }
func (a DeleteTunnel) Encode(Created) api.Message { return a.Tunnel.Kind().AddDel(a.Tunnel, false) }

func (a CreateTunnel) CLI() string { return a.Tunnel.Kind().CLI(a.Tunnel, "") }
func (a DeleteTunnel) CLI() string { return a.Tunnel.Kind().CLI(a.Tunnel, " del") }

func (a SetTag) Encode(c Created) api.Message {
	return &interfaces.SwInterfaceTagAddDel{IsAdd: a.Tag != "", SwIfIndex: c.at(a.Interface), Tag: a.Tag}
}

func (a SetTag) CLI() string {
	if a.Tag == "" {
		return "clear interface tag " + a.Interface.Name
	}
	return fmt.Sprintf("set interface tag %s %s", a.Interface.Name, a.Tag)
}

func (a SetMTU) Encode(c Created) api.Message {
	return &interfaces.SwInterfaceSetMtu{SwIfIndex: c.at(a.Interface), Mtu: []uint32{a.MTU, 0, 0, 0}}
}

func (a SetMTU) CLI() string {
	return fmt.Sprintf("set interface mtu packet %d %s", a.MTU, a.Interface.Name)
}

func (a SetRewrite) Encode(c Created) api.Message {
	return &l2.L2InterfaceVlanTagRewrite{SwIfIndex: c.at(a.Interface), VtrOp: a.Pop}
}

func (a SetRewrite) CLI() string {
	if a.Pop == 0 {
		return fmt.Sprintf("set interface l2 tag-rewrite %s disable", a.Interface.Name)
	}
	return fmt.Sprintf("set interface l2 tag-rewrite %s pop %d", a.Interface.Name, a.Pop-PopOne+1)
}

func (a SetConnect) Encode(c Created) api.Message {
	return &l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: c.at(a.From), TxSwIfIndex: c.at(a.To), Enable: true}
}

func (a SetConnect) CLI() string {
	return fmt.Sprintf("set interface l2 xconnect %s %s", a.From.Name, a.To.Name)
}

func (a ClearConnect) Encode(c Created) api.Message {
	return &l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: c.at(a.From), TxSwIfIndex: swIfIndex(a.To.Index)}
}

func (a ClearConnect) CLI() string { return "set interface l3 " + a.From.Name }

func (a SetAdmin) Encode(c Created) api.Message {
	state := interface_types.IfStatusFlags(0)
	if a.Up {
		state = interface_types.IF_STATUS_API_FLAG_ADMIN_UP
	}
	return &interfaces.SwInterfaceSetFlags{SwIfIndex: c.at(a.Interface), Flags: state}
}

func (a SetAdmin) CLI() string {
	state := "down"
	if a.Up {
		state = "up"
	}
	return fmt.Sprintf("set interface state %s %s", a.Interface.Name, state)
}
