// Package intent contains the intent of the portal for this router: one document for each generation,
// decoded strictly, stored on disk, compared by hash. The contract is docs/reference/agent-api.md.
package intent

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
)

// Tagging says which frames of a port belong to a VLL.
type Tagging string

const (
	Untagged Tagging = "untagged" // the whole port
	Dot1q    Tagging = "dot1q"    // 0x8100
	QinQ     Tagging = "qinq"     // 0x8100 over 0x8100
	Dot1ad   Tagging = "dot1ad"   // 0x88a8 over 0x8100
)

// Tags is the number of tags that select the VLL. These tags are popped on entry and pushed on exit.
func (t Tagging) Tags() int {
	switch t {
	case Dot1q:
		return 1
	case QinQ, Dot1ad:
		return 2
	}
	return 0
}

// Encapsulation is the method of transport to the other end.
type Encapsulation string

const (
	L2XC   Encapsulation = "l2xc" // both ends on this router
	VXLAN  Encapsulation = "vxlan"
	GENEVE Encapsulation = "geneve"
	GRE    Encapsulation = "gre" // transparent Ethernet bridging
)

// Key names one end of one VLL.
type Key struct {
	VLL string // UUID, lower case, with dashes
	End string // "a" or "z"
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

// Compare orders keys, so that output does not change from run to run.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.VLL, o.VLL), cmp.Compare(k.End, o.End))
}

// Intent is the intent for the whole router, in one generation.
type Intent struct {
	Router     string
	Generation int64
	Present    []End       // sorted by key
	Removed    []Tombstone // sorted by key
	Watch      Watch       // zero: no path is watched
	// PortMTUs is a local setting of this router that no document contains: interfaces that are created for
	// a line get the L3 MTU of its port.
	PortMTUs bool
}

// Watch has the settings for watching the paths between tunnel endpoints with BFD (RFC 5880). Each side
// sends a packet every Interval. A path is down when Multiplier packets in a row are missing.
type Watch struct {
	IntervalMS int
	Multiplier int
}

// Path leads from a tunnel endpoint of this router to one of another router.
type Path struct {
	Local  netip.Addr `json:"local"`
	Remote netip.Addr `json:"remote"`
}

func (p Path) String() string { return p.Local.String() + " to " + p.Remote.String() }

// Compare orders paths, so that output does not change from run to run.
func (p Path) Compare(o Path) int {
	return cmp.Or(p.Local.Compare(o.Local), p.Remote.Compare(o.Remote))
}

// Path returns the path of the tunnel; ok is false for a local cross-connect, which has none.
func (t Tunnel) Path() (path Path, ok bool) { return Path{t.Local, t.Remote}, t.Local.IsValid() }

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

// End is one end of a VLL that is to exist.
type End struct {
	Key
	Revision int32
	AdminUp  bool
	Frame    int    // largest carried frame, bytes, without FCS and without popped tags
	Access   Access // zero for a probe
	Tunnel   Tunnel
	// Bandwidth is the profile that the access side is policed to, zero for none.
	Bandwidth Bandwidth
	// Testing disconnects tunnel and access from each other, so that the tunnel carries test frames and
	// none of the customer's.
	Testing bool
	// Adopt takes over existing foreign interfaces for this end unchanged, except for their tags.
	Adopt bool
	// UNILinkDown keeps the whole port down although the end is up: link loss forwarding from the far end.
	UNILinkDown bool
	// Label is the line's name for people, for SNMP's ifAlias; "" if the portal does not send it. Nothing
	// in VPP depends on it.
	Label string
}

// AccessUp is the intended admin state of the access.
func (e End) AccessUp() bool { return e.AdminUp && !e.UNILinkDown }

// IsProbe reports whether the end is only a tunnel for test frames: it has no access, and is never
// connected to one.
func (e End) IsProbe() bool { return e.Access == Access{} }

// Bandwidth is a bandwidth profile (MEF 10.3): rates in bit/s, bursts in bytes. The excess part is zero if
// nothing beyond the committed rate is forwarded.
type Bandwidth struct {
	CIR, CBS int64
	EIR, EBS int64
}

// Access is the customer's side.
type Access struct {
	Interface string // VPP's name of the port
	Tagging   Tagging
	Outer     uint16 // 0 when untagged
	Inner     uint16 // 0 unless two tags
	Exact     bool   // VPP's exact-match
}

// Tunnel is the backbone's side. The addresses are invalid for L2XC; VNI is 0 for L2XC and GRE. GREKey is
// the key of RFC 2890, 0 for a tunnel without one and for other encapsulations. Table is the FIB table of
// its addresses, in either family.
type Tunnel struct {
	Encapsulation Encapsulation
	Local, Remote netip.Addr
	VNI           uint32
	GREKey        uint32
	Table         uint32
}

// Tombstone is one end of a VLL that is to be removed.
type Tombstone struct {
	Key
	Revision int32
	// Release returns the end's interfaces to their previous owner instead of deleting them. They keep
	// forwarding.
	Release bool
	// AccessTag and TunnelTag are the tags that released interfaces get, "" for none.
	AccessTag, TunnelTag string
}

// Error is one broken rule. Code is from the table in docs/reference/agent-api.md.
type Error struct {
	Pointer string `json:"pointer"` // RFC 6901
	Code    string `json:"code"`
	Detail  string `json:"detail"`
}
