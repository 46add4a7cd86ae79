package intent

// Frames describes the frames of a port that one sub-interface takes. VPP classifies a frame by the type of
// its outer tag, by the VLANs of its two outermost tags and by its number of tags. It gives the frame to the
// most specific sub-interface that matches (eth_identify_subint in vnet/ethernet/ethernet.h,
// ethernet_sw_interface_get_config in vnet/ethernet/node.c).
//
// VPP has one table of VLANs for outer tags of 802.1ad (0x88a8) and one for all other outer tags (0x8100,
// 0x9100, 0x9200). An inner tag counts as a tag only if its type is 0x8100. On a port, VPP reads only two
// tags, so an exact match of two tags also accepts frames with a third tag. On a bond, an exact match of two
// tags does not accept such frames.
type Frames struct {
	Dot1ad, AnyTPID bool
	Outer           uint16
	AnyOuter        bool
	Inner           uint16
	AnyInner        bool
	// Least and Most are the smallest and the largest number of tags. ManyTags means three or more.
	Least, Most uint8
	// If several sub-interfaces match a frame, VPP gives the frame to the sub-interface with the lowest Rank.
	Rank Rank
}

// ManyTags is the value for frames with three or more tags.
const ManyTags = 3

// Rank is the order in which VPP tries the sub-interfaces of a port.
type Rank uint8

const (
	ByAddress Rank = iota // p2p_ethernet: by the sender's MAC address, before any tag is read
	TwoVLANs              // outer and inner VLAN
	InnerAny              // outer VLAN, any inner VLAN
	OneVLAN               // outer VLAN; without exact match also with further tags
	AllTagged             // "default": each tagged frame that no other sub-interface takes
	NoVLAN                // "untagged"
)

// Frames returns the frames that the access takes from its port. An access that is a whole port takes all
// frames.
func (a Access) Frames() Frames {
	f := Frames{Dot1ad: a.Tagging == Dot1ad, Outer: a.Outer, Inner: a.Inner, Least: uint8(a.Tagging.Tags()), Most: ManyTags}
	switch f.Rank = TwoVLANs; f.Least {
	case 0:
		f.Rank, f.AnyTPID, f.AnyOuter, f.AnyInner = NoVLAN, true, true, true
	case 1:
		f.Rank, f.AnyInner = OneVLAN, true
	}
	if a.Exact && f.Least == 1 {
		f.Most = 1
	}
	return f
}

// Overlap reports whether any frame belongs to both f and o.
func (f Frames) Overlap(o Frames) bool {
	return max(f.Least, o.Least) <= min(f.Most, o.Most) &&
		(f.AnyTPID || o.AnyTPID || f.Dot1ad == o.Dot1ad) &&
		(f.AnyOuter || o.AnyOuter || f.Outer == o.Outer) &&
		(f.AnyInner || o.AnyInner || f.Inner == o.Inner)
}
