package plan

import (
	"fmt"

	"longline.dev/agent/internal/intent"
)

// VPP's tag rewrite operations (l2_vtr.h).
const (
	PopOne = 3
	PopTwo = 4
)

// Action is the change that an operation makes. Message returns the name of VPP's API message, and CLI the
// equivalent CLI command.
type Action interface {
	Message() string
	CLI() string
	// Target returns the interface that the action changes or creates.
	Target() Ref
	// Names returns the interfaces that must not have changed since the plan was made. These are the
	// interfaces that the message names by index. For a deletion by key, Names also returns the interface
	// with that key.
	Names() []Ref
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

func (a CreateSub) Message() string { return "create_subif" }
func (a DeleteSub) Message() string { return "delete_subif" }
func (a CreateTunnel) Message() string {
	return a.Tunnel.Kind().AddDel(a.Tunnel, true).GetMessageName()
}
func (a DeleteTunnel) Message() string {
	return a.Tunnel.Kind().AddDel(a.Tunnel, false).GetMessageName()
}
func (a SetTag) Message() string       { return "sw_interface_tag_add_del" }
func (a SetMTU) Message() string       { return "sw_interface_set_mtu" }
func (a SetRewrite) Message() string   { return "l2_interface_vlan_tag_rewrite" }
func (a SetConnect) Message() string   { return "sw_interface_set_l2_xconnect" }
func (a ClearConnect) Message() string { return "sw_interface_set_l2_xconnect" }
func (a SetAdmin) Message() string     { return "sw_interface_set_flags" }

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

func (a CreateSub) Names() []Ref    { return []Ref{a.Port} }
func (a DeleteSub) Names() []Ref    { return []Ref{a.Sub} }
func (a CreateTunnel) Names() []Ref { return nil }
func (a DeleteTunnel) Names() []Ref { return []Ref{a.Interface} }
func (a SetTag) Names() []Ref       { return []Ref{a.Interface} }
func (a SetMTU) Names() []Ref       { return []Ref{a.Interface} }
func (a SetRewrite) Names() []Ref   { return []Ref{a.Interface} }
func (a SetConnect) Names() []Ref   { return []Ref{a.From, a.To} }
func (a ClearConnect) Names() []Ref { return []Ref{a.From} }
func (a SetAdmin) Names() []Ref     { return []Ref{a.Interface} }

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

func (a DeleteSub) CLI() string { return "delete sub-interface " + a.Sub.Name }

func (a CreateTunnel) CLI() string { return a.Tunnel.Kind().CLI(a.Tunnel, "") }
func (a DeleteTunnel) CLI() string { return a.Tunnel.Kind().CLI(a.Tunnel, " del") }

func (a SetTag) CLI() string {
	if a.Tag == "" {
		return "clear interface tag " + a.Interface.Name
	}
	return fmt.Sprintf("set interface tag %s %s", a.Interface.Name, a.Tag)
}

func (a SetMTU) CLI() string {
	return fmt.Sprintf("set interface mtu packet %d %s", a.MTU, a.Interface.Name)
}

func (a SetRewrite) CLI() string {
	if a.Pop == 0 {
		return fmt.Sprintf("set interface l2 tag-rewrite %s disable", a.Interface.Name)
	}
	return fmt.Sprintf("set interface l2 tag-rewrite %s pop %d", a.Interface.Name, a.Pop-PopOne+1)
}

func (a SetConnect) CLI() string {
	return fmt.Sprintf("set interface l2 xconnect %s %s", a.From.Name, a.To.Name)
}

func (a ClearConnect) CLI() string { return "set interface l3 " + a.From.Name }

func (a SetAdmin) CLI() string {
	state := "down"
	if a.Up {
		state = "up"
	}
	return fmt.Sprintf("set interface state %s %s", a.Interface.Name, state)
}
