package vppsim

import (
	"encoding/binary"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/policer_types"
)

// tagHeader contains the fields of a frame that ethernet-input reads.
//
// If all frames of a vector come from one port, ethernet-input reads two tags and accepts only the outer
// types 0x8100 and 0x88a8 (eth_input_tag_lookup in vnet/ethernet/node.c). If the frames may come from several
// ports, for example behind a bond, it counts up to three tags and also accepts 0x9100 and 0x9200
// (parse_header).
type tagHeader struct {
	dot1ad       bool
	tags         int // 3 means three or more
	outer, inner uint16
}

const (
	typeVLAN     = 0x8100
	typeDot1ad   = 0x88a8
	typeVLAN9100 = 0x9100
	typeVLAN9200 = 0x9200
)

// readHeader reads the tags of a frame. As in VPP, an inner tag counts only if its type is 0x8100. mixed
// means that the vector may contain frames of several ports.
func readHeader(frame []byte, mixed bool) tagHeader {
	h := tagHeader{}
	at := 12
	next16 := func() uint16 {
		if at+2 > len(frame) {
			return 0
		}
		at += 2
		return binary.BigEndian.Uint16(frame[at-2:])
	}
	first := next16()
	switch first {
	case typeVLAN, typeDot1ad:
	case typeVLAN9100, typeVLAN9200:
		if !mixed {
			return h
		}
	default:
		return h
	}
	h.dot1ad, h.tags, h.outer = first == typeDot1ad, 1, next16()&0xfff
	if next16() != typeVLAN {
		return h
	}
	h.tags, h.inner = 2, next16()&0xfff
	if next16() == typeVLAN && mixed {
		h.tags = 3
	}
	return h
}

// classify returns the interface that gets a frame: a sub-interface of the port, or the port itself. It
// returns nil if no interface gets the frame (eth_identify_subint in vnet/ethernet/ethernet.h). A port in L3
// mode accepts only untagged frames.
func (v *vpp) classify(port *iface, h tagHeader) *iface {
	if h.tags == 1 && h.outer == 0 {
		h.tags = 0 // the tag has only a priority, so the frame counts as untagged
	}
	takes := func(i *iface) bool {
		switch {
		case !i.isSub():
			return h.tags == 0 || i.l2.kind != l3Mode
		case i.sub.flags&defaultSub != 0:
			return h.tags > 0
		case i.sub.numberOfTags() == 0:
			return h.tags == 0
		}
		return h.tags == int(i.sub.numberOfTags()) || h.tags > int(i.sub.numberOfTags()) && i.sub.flags&exactMatch == 0
	}
	var kind interface_types.SubIfFlags
	if h.dot1ad {
		kind = dot1ad
	}
	places := []vlanKey{
		{port.index, twoTags | kind, h.outer, h.inner}, {port.index, twoTags | innerAny | kind, h.outer, 0},
		{port.index, oneTag | kind, h.outer, 0}, {port.index, defaultSub, 0, 0}, {port.index, noTags, 0, 0},
	}
	for _, place := range places {
		if i := v.vlans[place]; i != nil && takes(i) {
			return i
		}
	}
	return nil
}

// receiveFrames processes equal frames that a port receives at the same time, as from a packet generator.
// The frames pass the features of the port, its bond, the table of VLANs and the L2 features. They leave
// through the cross-connected interface.
func (v *vpp) receiveFrames(port *iface, count, size int, frame []byte) {
	if !port.adminUp {
		return
	}
	v.countFrames(port, count, size)
	if p, index := v.nodePolicer(port); p != nil {
		count = v.policeBurst(port, p, index, count, size)
	}
	mixed := port.bond != nil
	if mixed {
		port = port.bond
		v.countFrames(port, count, size)
	}
	to := v.classify(port, readHeader(frame, mixed))
	switch {
	case to == nil:
		v.drop(port, uint64(count))
		v.segment.countError(unknownVLAN, uint64(count))
		return
	case !to.adminUp:
		v.drop(port, uint64(count))
		return
	case to != port:
		v.countFrames(to, count, size)
	}
	far := v.connected(to)
	if far == nil || !far.adminUp {
		v.drop(to, uint64(count))
		return
	}
	if p, index := v.l2Policer(to); p != nil {
		count = v.policeBurst(to, p, index, count, size)
	}
	v.segment.add(sent, far.index, uint64(count), uint64(count*size))
	if far.isSub() {
		v.segment.add(sent, far.sup, uint64(count), uint64(count*size))
	}
}

func (v *vpp) countFrames(i *iface, count, size int) {
	v.segment.add(received, i.index, uint64(count), uint64(count*size))
}

// policeBurst returns the number of frames of a burst that a policer with full buckets lets through.
func (v *vpp) policeBurst(i *iface, p *namedPolicer, index uint32, count, size int) int {
	fits := func(bytes uint64) int { return int(min(uint64(count), bytes/uint64(size))) }
	conform := fits(p.config.Cb)
	passed := conform
	if p.config.Type != policer_types.SSE2_QOS_POLICER_TYPE_API_1R2C {
		passed = max(conform, fits(p.config.Eb)) // the bucket of the peak rate also contains the conforming frames
	}
	for class, frames := range []int{conform, passed - conform, count - passed} {
		v.segment.add(policed[class], index, uint64(frames), uint64(frames*size))
	}
	v.drop(i, uint64(count-passed))
	return passed
}
