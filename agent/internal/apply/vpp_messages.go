// Package apply carries out a plan stage by stage. The messages of a stage are pipelined. The failure of an
// operation affects only the operation's end of a VLL.
package apply

import (
	"fmt"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/classify"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/policer"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/plan"
)

type index = interface_types.InterfaceIndex

// none means "VPP chooses" or "not used". Go's zero value would mean node drop, interface 0 or instance 0.
const none = observe.NoIndex

// tableMemory is the size of the heap of a classify table (bytes of address space). VPP's default of 2 MB is
// meant for many sessions.
const tableMemory = 16 << 10

// encode returns an operation as a message, with the indices of the objects that earlier operations
// created.
func (r *applying) encode(op plan.Op) api.Message {
	find := r.indexOf
	target := find(op.Action.Target())
	switch a := op.Action.(type) {
	case plan.CreateSub:
		return &interfaces.CreateSubif{
			SwIfIndex: find(a.Port), SubID: a.ID, SubIfFlags: flags(a.Access), OuterVlanID: a.Access.Outer, InnerVlanID: a.Access.Inner,
		}
	case plan.DeleteSub:
		return &interfaces.DeleteSubif{SwIfIndex: target}
	case plan.CreateTunnel:
		return a.Tunnel.Kind().AddDel(a.Tunnel, true)
	case plan.DeleteTunnel:
		return a.Tunnel.Kind().AddDel(a.Tunnel, false)
	case plan.SetTag:
		return &interfaces.SwInterfaceTagAddDel{IsAdd: a.Tag != "", SwIfIndex: target, Tag: a.Tag}
	case plan.SetMTU:
		return &interfaces.SwInterfaceSetMtu{SwIfIndex: target, Mtu: []uint32{a.MTU, 0, 0, 0}}
	case plan.SetRewrite:
		return &l2.L2InterfaceVlanTagRewrite{SwIfIndex: target, VtrOp: a.Pop}
	case plan.SetConnect:
		return &l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: target, TxSwIfIndex: find(a.To), Enable: true}
	case plan.ClearConnect:
		return &l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: target, TxSwIfIndex: index(a.To.Index), Enable: false}
	case plan.AddPolicer:
		return &policer.PolicerAdd{Name: a.Name, Infos: observe.PolicerConfig(a.Bandwidth)}
	case plan.UpdatePolicer:
		return &policer.PolicerUpdate{PolicerIndex: a.Index, Infos: observe.PolicerConfig(a.Bandwidth)}
	case plan.DeletePolicer:
		return &policer.PolicerDel{PolicerIndex: a.Index}
	case plan.SetPolicing:
		// Use the variants by name, because VPP's replies to the variants by index have the number of another
		// message.
		return &policer.PolicerInput{Name: a.Policer, SwIfIndex: target, Apply: a.On}
	case plan.AddTable:
		return &classify.ClassifyAddDelTable{
			IsAdd: true, TableIndex: none, Nbuckets: observe.TableBuckets, MemorySize: tableMemory, MatchNVectors: 1, NextTableIndex: none,
			MissNextIndex: a.Mark, MaskLen: uint32(len(observe.GroupBit)), Mask: observe.GroupBit,
		}
	case plan.DeleteTable:
		return &classify.ClassifyAddDelTable{
			TableIndex: a.Table.Index, MatchNVectors: 1, NextTableIndex: none, MissNextIndex: none, MaskLen: uint32(len(observe.GroupBit)),
			Mask: observe.GroupBit,
		}
	case plan.SetSession:
		return &classify.ClassifyAddDelSession{
			IsAdd: true, TableIndex: r.tableOf(op.End, a.Table), HitNextIndex: r.policerOf(op.End, a.Index), OpaqueIndex: none,
			MatchLen: uint32(len(observe.GroupBit)), Match: a.Match(),
		}
	case plan.SetClassifier:
		return &classify.PolicerClassifySetInterface{
			SwIfIndex: target, IP4TableIndex: none, IP6TableIndex: none, L2TableIndex: r.tableOf(op.End, a.Table), IsAdd: a.On,
		}
	case plan.SetAdmin:
		state := interface_types.IfStatusFlags(0)
		if a.Up {
			state = interface_types.IF_STATUS_API_FLAG_ADMIN_UP
		}
		return &interfaces.SwInterfaceSetFlags{SwIfIndex: target, Flags: state}
	}
	panic(fmt.Sprintf("apply: no message for %T", op.Action))
}

func flags(a intent.Access) interface_types.SubIfFlags {
	f := interface_types.SUB_IF_API_FLAG_ONE_TAG
	if a.Tagging.Tags() == 2 {
		f = interface_types.SUB_IF_API_FLAG_TWO_TAGS
	}
	if a.Tagging == intent.Dot1ad {
		f |= interface_types.SUB_IF_API_FLAG_DOT1AD
	}
	if a.Exact {
		f |= interface_types.SUB_IF_API_FLAG_EXACT_MATCH
	}
	return f
}
