package vppsim

import "go.fd.io/govpp/binapi/l2"

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

func vtrOperations() []operation {
	return []operation{on((*vpp).setTagRewrite, &l2.L2InterfaceVlanTagRewriteReply{})}
}

// rewrite returns the tag rewrite of an interface. VPP stores the rewrite by the interface's index. A rewrite
// that was set on an interface in L3 mode remains when the interface is deleted. The rewrite then applies to
// the next interface with the same index.
func (v *vpp) rewrite(i *iface) tagRewrite {
	if !v.interfaces[i.sup].ethernet {
		return tagRewrite{}
	}
	return v.rewrites[i.index]
}

// setTagRewrite sets the tag rewrite of an interface. Before VPP checks the new rewrite, it clears the tags
// that the present rewrite pushes. So if VPP refuses the new rewrite, the present rewrite remains, but pushes
// tags with type and ID 0 (vnet/l2/l2_vtr.c: l2vtr_configure).
func (v *vpp) setTagRewrite(c *call, m *l2.L2InterfaceVlanTagRewrite) {
	reply := &l2.L2InterfaceVlanTagRewriteReply{}
	i := v.at(m.SwIfIndex)
	switch {
	case i == nil:
		reply.Retval = retvalInvalidInterface
	case !v.interfaces[i.sup].ethernet:
		reply.Retval = retvalNotEthernet
	default:
		if popped(m.VtrOp) > explicitTags(i) {
			reply.Retval = retvalTagCount
			v.rewrites[i.index] = tagRewrite{op: v.rewrites[i.index].op}
		} else {
			v.rewrites[i.index] = asRead(m)
		}
	}
	c.reply(reply)
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
