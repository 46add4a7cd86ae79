package vppsim

import (
	"fmt"

	interfaces "go.fd.io/govpp/binapi/interface"
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

const (
	oneTag     = interface_types.SUB_IF_API_FLAG_ONE_TAG
	twoTags    = interface_types.SUB_IF_API_FLAG_TWO_TAGS
	noTags     = interface_types.SUB_IF_API_FLAG_NO_TAGS
	dot1ad     = interface_types.SUB_IF_API_FLAG_DOT1AD
	exactMatch = interface_types.SUB_IF_API_FLAG_EXACT_MATCH
	defaultSub = interface_types.SUB_IF_API_FLAG_DEFAULT
	outerAny   = interface_types.SUB_IF_API_FLAG_OUTER_VLAN_ID_ANY
	innerAny   = interface_types.SUB_IF_API_FLAG_INNER_VLAN_ID_ANY
)

// subif has the parameters of create_subif.
type subif struct {
	id           uint32
	flags        interface_types.SubIfFlags
	outer, inner uint16
}

func (s *subif) numberOfTags() uint8 {
	var tags uint8
	if s.flags&oneTag != 0 {
		tags++
	}
	if s.flags&twoTags != 0 {
		tags += 2
	}
	return tags
}

// explicitTags returns the number of tags whose VLAN is a number. Only such tags can be removed (cfg_tags
// in vnet/l2/l2_vtr.c).
func (s *subif) explicitTags() int {
	switch {
	case s.flags&noTags != 0 || s.flags&outerAny != 0:
		return 0
	case s.flags&oneTag != 0:
		return 1
	case s.flags&twoTags != 0 && s.flags&innerAny != 0:
		return 1
	case s.flags&twoTags != 0:
		return 2
	}
	return 0
}

// subKey identifies a sub-interface by the index of its port and by its sub-interface ID.
type subKey struct{ port, id uint32 }

// vlanKey is the key of a sub-interface in the VLAN table of its port (ethernet_sw_interface_get_config
// in vnet/ethernet/node.c). The exact-match flag is not part of the key. The port itself has the same key as
// its sub-interface "untagged".
type vlanKey struct {
	port         uint32
	kind         interface_types.SubIfFlags
	outer, inner uint16
}

func untaggedKey(port uint32) vlanKey { return vlanKey{port: port, kind: noTags} }

func (s *subif) key(port uint32) vlanKey {
	switch kind := s.flags & dot1ad; {
	case s.flags&defaultSub != 0:
		return vlanKey{port: port, kind: defaultSub}
	case s.flags&(oneTag|twoTags) == 0:
		return untaggedKey(port)
	case s.flags&oneTag != 0:
		return vlanKey{port, kind | oneTag, s.outer, 0}
	case s.flags&innerAny != 0:
		return vlanKey{port, kind | twoTags | innerAny, s.outer, 0}
	default: // VPP uses the outer number even if the outer VLAN is "any"
		return vlanKey{port, kind | twoTags, s.outer, s.inner}
	}
}

// implemented reports whether VPP implements these parameters. VPP refuses other parameters as "not
// implemented yet".
func (s *subif) implemented() bool {
	return s.flags&outerAny == 0 || s.flags&oneTag == 0 && s.flags&innerAny == 0
}

func (v *vpp) createSubif(m *interfaces.CreateSubif, reply *interfaces.CreateSubifReply) {
	reply.SwIfIndex, reply.Retval = everyIndex, retvalInvalidInterface
	if parent := v.at(m.SwIfIndex); parent != nil {
		var made *iface
		made, reply.Retval = v.addSubinterface(parent, &subif{id: m.SubID, flags: m.SubIfFlags, outer: m.OuterVlanID, inner: m.InnerVlanID})
		if made != nil {
			reply.SwIfIndex = interface_types.InterfaceIndex(made.index)
		}
	}
}

// addSubinterface creates a sub-interface. It simulates a defect of VPP: VPP refuses a second sub-interface
// with the same tags, but removes the entry of the first sub-interface from the VLAN table. The first
// sub-interface then gets no frames until it is deleted and created again.
func (v *vpp) addSubinterface(parent *iface, sub *subif) (*iface, int32) {
	if v.subinterface(parent, sub.id) != nil {
		return nil, retvalVLANExists
	}
	if sub.flags&twoTags != 0 && sub.flags&exactMatch != 0 && sub.flags&(innerAny|outerAny) != 0 || !sub.implemented() {
		return nil, retvalUnspecified
	}
	i := v.insert(&iface{
		name: fmt.Sprintf("%s.%d", parent.name, sub.id), device: parent.device, sup: parent.sup,
		ethernet: parent.ethernet, linkMTU: parent.linkMTU, sub: sub,
	})
	key := sub.key(parent.sup)
	if v.vlans[key] != nil {
		delete(v.vlans, key)
		v.release(i.index)
		return nil, retvalUnspecified
	}
	v.vlans[key] = i
	v.subs[subKey{parent.sup, sub.id}] = i
	return i, 0
}

func (v *vpp) deleteSubif(i *iface, _ *interfaces.DeleteSubif) int32 {
	if !i.isSub() {
		return retvalInvalidSubInterface
	}
	v.removeSubinterface(i)
	return 0
}

func (v *vpp) removeSubinterface(i *iface) {
	delete(v.vlans, i.sub.key(i.sup))
	delete(v.subs, subKey{i.sup, i.sub.id})
	v.remove(i)
}

func (v *vpp) removeSubinterfaces(parent *iface) {
	for _, i := range v.interfaces.all() {
		if i.isSub() && i.sup == parent.index {
			v.removeSubinterface(i)
		}
	}
}

func (v *vpp) subinterface(parent *iface, id uint32) *iface { return v.subs[subKey{parent.sup, id}] }

// receives reports whether frames still reach the interface. For a sub-interface, these are frames with its
// tags; for a port, they are untagged frames. Frames that a member of a bond receives belong to the bond.
func (v *vpp) receives(i *iface) bool {
	port := v.port(i)
	if port == nil || port.bond != nil {
		return false
	}
	if !i.isSub() {
		return !i.ethernet || v.vlans[untaggedKey(i.index)] == i
	}
	if i.sub.numberOfTags() == 0 {
		return v.vlans[i.sub.key(i.sup)] == i
	}
	return v.classify(port, tagHeader{
		dot1ad: i.sub.flags&dot1ad != 0, tags: int(i.sub.numberOfTags()), outer: i.sub.outer, inner: i.sub.inner,
	}) == i
}

func (s SubInterface) subif() *subif {
	sub := &subif{id: s.ID, flags: oneTag, outer: s.OuterVLAN, inner: s.InnerVLAN}
	if s.InnerVLAN != 0 {
		sub.flags = twoTags
	}
	if s.Dot1ad {
		sub.flags |= dot1ad
	}
	if s.ExactMatch {
		sub.flags |= exactMatch
	}
	return sub
}
