package vppsim

import (
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"
)

type l2kind int

const (
	l3Mode l2kind = iota
	xconnectMode
	bridgeMode
)

// l2mode is the L2 mode of an interface: none, one direction of a cross-connect, or membership of a
// bridge domain. peer is an interface index. The interface with this index may have been deleted, and another
// interface may have got the index.
type l2mode struct {
	kind   l2kind
	peer   uint32
	bridge uint32
	shg    uint8
}

func (v *vpp) setXconnect(m *l2.SwInterfaceSetL2Xconnect) int32 {
	rx := v.at(m.RxSwIfIndex)
	switch {
	case rx == nil, m.Enable && v.at(m.TxSwIfIndex) == nil:
		return retvalInvalidInterface
	case !m.Enable:
		v.leaveL2(rx)
	default: // if the interface was in another L2 mode before, its tag rewrite remains
		rx.l2 = l2mode{kind: xconnectMode, peer: uint32(m.TxSwIfIndex)}
	}
	return 0
}

// leaveL2 moves an interface to L3 mode. The interface loses its tag rewrite and its L2 features
// (set_int_l2_mode in vnet/l2/l2_input.c).
func (v *vpp) leaveL2(i *iface) {
	i.l2 = l2mode{}
	delete(v.rewrites, i.index)
	if a := v.policers.applied[i.index]; a != nil {
		a.l2 = false
	}
	delete(v.classifiers.works, i.index)
}

func (v *vpp) xconnectDump(_ *l2.L2XconnectDump, send func(*l2.L2XconnectDetails)) {
	for index, i := range v.interfaces.all() {
		if i.l2.kind == xconnectMode {
			send(&l2.L2XconnectDetails{RxSwIfIndex: interface_types.InterfaceIndex(index), TxSwIfIndex: interface_types.InterfaceIndex(i.l2.peer)})
		}
	}
}

// Operations of l2_interface_vlan_tag_rewrite (vnet/l2/l2_vtr.h).
const (
	rewriteDisabled = iota
	rewritePush1
	rewritePush2
	rewritePop1
	rewritePop2
	rewriteTranslate11
	rewriteTranslate12
	rewriteTranslate21
	rewriteTranslate22
)

type tagRewrite struct {
	op, pushDot1q, tag1, tag2 uint32
}

// rewrite returns the tag rewrite of an interface. VPP stores the rewrite by the interface's index. A rewrite
// that was set on an interface in L3 mode remains when the interface is deleted. The rewrite then applies to
// the next interface with the same index.
func (v *vpp) rewrite(i *iface) tagRewrite {
	if !v.port(i).ethernet {
		return tagRewrite{}
	}
	return v.rewrites[i.index]
}

// setTagRewrite sets the tag rewrite of an interface. Before VPP checks the new rewrite, it clears the tags
// that the present rewrite pushes. So if VPP refuses the new rewrite, the present rewrite remains, but pushes
// tags with type and ID 0 (vnet/l2/l2_vtr.c: l2vtr_configure).
func (v *vpp) setTagRewrite(i *iface, m *l2.L2InterfaceVlanTagRewrite) int32 {
	switch {
	case !v.port(i).ethernet:
		return retvalNotEthernet
	case popped(m.VtrOp) > explicitTags(i):
		v.rewrites[i.index] = tagRewrite{op: v.rewrites[i.index].op}
		return retvalTagCount
	}
	v.rewrites[i.index] = asRead(m)
	return 0
}

func explicitTags(i *iface) int {
	if i.isSub() {
		return i.sub.explicitTags()
	}
	return 0
}

// popped returns the number of tags that the operation removes from received frames.
func popped(op uint32) int {
	switch op {
	case rewritePop1, rewriteTranslate11, rewriteTranslate12:
		return 1
	case rewritePop2, rewriteTranslate21, rewriteTranslate22:
		return 2
	}
	return 0
}

// asRead returns the rewrite that VPP stores. Only the tags that the operation pushes are stored.
func asRead(m *l2.L2InterfaceVlanTagRewrite) tagRewrite {
	switch m.VtrOp {
	case rewritePush1, rewriteTranslate11, rewriteTranslate21:
		return tagRewrite{op: m.VtrOp, pushDot1q: min(m.PushDot1q, 1), tag1: m.Tag1}
	case rewritePush2, rewriteTranslate12, rewriteTranslate22:
		return tagRewrite{op: m.VtrOp, pushDot1q: min(m.PushDot1q, 1), tag1: m.Tag1, tag2: m.Tag2}
	case rewritePop1, rewritePop2:
		return tagRewrite{op: m.VtrOp}
	}
	return tagRewrite{}
}
