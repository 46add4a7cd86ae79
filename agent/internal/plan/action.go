package plan

import (
	"fmt"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"

	"longline.dev/agent/internal/intent"
)

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
