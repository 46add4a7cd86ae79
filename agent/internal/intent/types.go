// Package intent contains the portal's intent for this router (docs/reference/agent-api.md). Each generation
// of the intent is one document. Documents are decoded strictly, stored on disk and compared by hash.
package intent

import (
	"cmp"
	"maps"
	"slices"

	"longline.dev/agent/internal/tunnel"
)

// Tagging says which frames of a port belong to a VLL.
type Tagging string

const (
	Untagged Tagging = "untagged" // the whole port
	Dot1q    Tagging = "dot1q"    // 0x8100
	QinQ     Tagging = "qinq"     // 0x8100 over 0x8100
	Dot1ad   Tagging = "dot1ad"   // 0x88a8 over 0x8100
)

// Tags returns the number of tags that select the VLL. VPP pops these tags from received frames and pushes
// them on sent frames.
func (t Tagging) Tags() int {
	switch t {
	case Dot1q:
		return 1
	case QinQ, Dot1ad:
		return 2
	}
	return 0
}

// The backbone's side of an end is described by package tunnel.
type (
	Encapsulation = tunnel.Encapsulation
	Tunnel        = tunnel.Tunnel
	Path          = tunnel.Path
)

const (
	L2XC   = tunnel.L2XC
	VXLAN  = tunnel.VXLAN
	GENEVE = tunnel.GENEVE
	GRE    = tunnel.GRE
)

// Key identifies one end of one VLL.
type Key struct {
	VLL string `json:"vll"` // UUID, lower case, with dashes
	End string `json:"end"` // "a" or "z"
}

func (k Key) String() string { return k.VLL + ":" + k.End }

// EndsOf returns the keys of both ends of a VLL.
func EndsOf(vll string) [2]Key { return [2]Key{{vll, "a"}, {vll, "z"}} }

// Other returns the opposite end of the same VLL.
func (k Key) Other() Key {
	if k.End == "a" {
		return Key{k.VLL, "z"}
	}
	return Key{k.VLL, "a"}
}

// Compare defines the order of keys. A fixed order prevents output that changes from run to run.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.VLL, o.VLL), cmp.Compare(k.End, o.End))
}

// Intent is the intent for the whole router, in one generation.
type Intent struct {
	Router     string
	Generation int64
	Present    []End       // sorted by key
	Removed    []Tombstone // sorted by key
	Watch      Watch       // zero if no path is watched
	// PortMTUs is a local setting of this router that no document contains. It means that interfaces that are
	// created for a line get the L3 MTU of the line's port.
	PortMTUs bool
}

// Watch has the settings for watching the paths between tunnel endpoints with BFD (RFC 5880). Each side sends
// a packet every IntervalMS milliseconds. A path is down when Multiplier packets in a row are missing.
type Watch struct {
	IntervalMS int
	Multiplier int
}

// Paths returns the paths of the tunnels of present ends, sorted and without duplicates. All lines between
// the same two addresses share one path.
func (in *Intent) Paths() []Path {
	taken := make(map[Path]bool)
	for i := range in.Present {
		if path, tunnelled := in.Present[i].Tunnel.Path(); tunnelled {
			taken[path] = true
		}
	}
	return slices.SortedFunc(maps.Keys(taken), Path.Compare)
}

// End is one end of a VLL that the agent has to create or keep.
type End struct {
	Key
	Revision int32
	AdminUp  bool
	Frame    int    // longest frame that the line must carry (bytes), without FCS and without popped tags
	Access   Access // zero for a probe
	Tunnel   Tunnel
	// Bandwidth is the profile that VPP enforces on frames received on the access. It is zero if there is no
	// profile.
	Bandwidth Bandwidth
	// Testing means that tunnel and access are not connected to each other, so that the tunnel carries test
	// frames and no frames of the customer.
	Testing bool
	// Adopt means that the agent takes over existing interfaces of other clients for this end, and changes only
	// their tags.
	Adopt bool
	// UNILinkDown means that the agent shuts the whole port down although the end is up, because the far end has
	// lost its link (link loss forwarding).
	UNILinkDown bool
	// Label is the line's name for people, which SNMP reports as ifAlias. It is "" if the portal sends no
	// label. Nothing in VPP depends on the label.
	Label string
}

// flags are the optional boolean members of an end, sorted by name. An absent member is false. Documents are
// decoded and written by this list.
var flags = []struct {
	name string
	of   func(*End) *bool
}{
	{"adopt", func(e *End) *bool { return &e.Adopt }},
	{"testing", func(e *End) *bool { return &e.Testing }},
	{"uni_link_down", func(e *End) *bool { return &e.UNILinkDown }},
}

// AccessUp returns the intended admin state of the access.
func (e End) AccessUp() bool { return e.AdminUp && !e.UNILinkDown }

// IsProbe reports whether the end is a probe: a tunnel for test frames that has no access and is never
// connected to one.
func (e End) IsProbe() bool { return e.Access == Access{} }

// Bandwidth is a bandwidth profile (MEF 10.4): rates in bit/s, bursts in bytes. EIR and EBS are zero if VPP
// forwards nothing beyond the committed rate.
type Bandwidth struct {
	CIR, CBS int64
	EIR, EBS int64
}

// Access is the customer's side of an end.
type Access struct {
	Interface string // VPP's name of the port
	Tagging   Tagging
	Outer     uint16 // 0 when untagged
	Inner     uint16 // 0 unless the access has two tags
	Exact     bool   // VPP's exact-match
}

// Tombstone is one end of a VLL that the agent has to remove.
type Tombstone struct {
	Key
	Revision int32
	// Release means that the agent does not delete the end's interfaces, but gives up their ownership. The
	// interfaces keep forwarding.
	Release bool
	// AccessTag and TunnelTag are the tags that the released interfaces get, or "" for no tag.
	AccessTag, TunnelTag string
}

// Error is one rule that a document breaks. Code is from the table in docs/reference/agent-api.md.
type Error struct {
	Pointer string `json:"pointer"` // RFC 6901
	Code    string `json:"code"`
	Detail  string `json:"detail"`
}

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
