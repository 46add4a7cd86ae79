// Package observe reads what is configured in VPP: everything the planner needs to know, in a few dumps.
package observe

import (
	"cmp"
	"net/netip"
	"slices"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/ownership"
)

// NoIndex is VPP's "no interface".
const NoIndex = ^uint32(0)

// Interface is one VPP interface: a port, a sub-interface, a tunnel or a loopback.
type Interface struct {
	Index uint32
	Name  string
	Tag   string
	// Device is VPP's device class: "af-packet", "dpdk", "VXLAN", "Loopback", ...
	Device string
	Sup    uint32 // the port of a sub-interface, Index itself for all others

	AdminUp, LinkUp bool
	L3MTU           uint32 // 0: none set
	LinkMTU         uint32 // the largest frame of the device, as VPP counts it; 0: not known
	IP4MTU, IP6MTU  uint32
	SpeedBPS        uint64  // of the link; 0: VPP does not know it
	MAC             [6]byte // zero: it has none, or is a sub-interface

	Sub     SubInterface // zero unless Sup differs from Index
	Rewrite uint32       // VPP's tag rewrite operation: 0 none, 3 pop one, 4 pop two

	Addresses []netip.Prefix // not read for what the agent made
	// Tables are those of its IPv4 and its IPv6 addresses; read where it has some of that family.
	Tables [2]uint32
}

// Same reports whether both have all in common that an interface is made with, and the tag, which dies with it.
func (i *Interface) Same(other *Interface) bool {
	return i.Index == other.Index && i.Name == other.Name && i.Tag == other.Tag && i.Device == other.Device && i.Sup == other.Sup &&
		i.Sub == other.Sub
}

// SubInterface is how frames are selected from a port.
type SubInterface struct {
	ID           uint32
	Tags         uint8
	Dot1ad       bool
	Exact        bool
	Outer, Inner uint16
	Selection    Selection
}

// Selection is by what a sub-interface selects frames.
type Selection uint8

const (
	ByVLANs       Selection = iota // exact numbers of tags
	AnyInner                       // any inner VLAN under an outer VLAN
	AnyOuter                       // any outer VLAN; VPP refuses most of these as "not implemented yet"
	DefaultSub                     // each tagged frame that no other sub-interface takes
	UntaggedSub                    // frames without a tag
	OtherThanTags                  // the sender's MAC address (p2p_ethernet), or what a later VPP has
)

// Wide is true for selections that equal no (TPID, outer, inner).
func (s SubInterface) Wide() bool { return s.Selection != ByVLANs }

// Frames are those that the sub-interface takes of its port.
func (s SubInterface) Frames() intent.Frames {
	f := intent.Frames{Dot1ad: s.Dot1ad, Outer: s.Outer, Inner: s.Inner, Least: s.Tags, Most: intent.ManyTags, Rank: intent.TwoVLANs}
	if s.Tags == 1 {
		f.AnyInner, f.Rank = true, intent.OneVLAN
		if s.Exact {
			f.Most = 1
		}
	}
	switch s.Selection {
	case AnyInner:
		f.AnyInner, f.Rank = true, intent.InnerAny
	case AnyOuter:
		f.AnyOuter, f.AnyInner = true, true
	case DefaultSub:
		return intent.Frames{AnyTPID: true, AnyOuter: true, AnyInner: true, Least: 1, Most: intent.ManyTags, Rank: intent.AllTagged}
	case UntaggedSub:
		return intent.Frames{AnyTPID: true, AnyOuter: true, AnyInner: true, Rank: intent.NoVLAN}
	case OtherThanTags:
		return intent.Frames{AnyTPID: true, AnyOuter: true, AnyInner: true, Most: intent.ManyTags, Rank: intent.ByAddress}
	}
	return f
}

// IsSub is true for sub-interfaces.
func (i *Interface) IsSub() bool { return i.Sup != i.Index }

// Tunnel is a VXLAN, GENEVE or GRE TEB tunnel.
type Tunnel struct {
	intent.Tunnel
	Index uint32
	// Default is true when port and mode are those that the agent uses, and the table is known. Others are somebody
	// else's and, but for GENEVE, live beside ours.
	Default bool
}

// Snapshot is VPP's state at one moment, without the generator of the agent's test frames.
type Snapshot struct {
	Boot       ownership.Boot
	Epoch      int64               // of VPP's stats segment before any interface was read, 0 when not known
	Interfaces []*Interface        // sorted by index
	Tunnels    []*Tunnel           // sorted by index
	Connects   map[uint32]uint32   // L2 cross-connects: received on -> sent to
	Bridged    map[uint32]uint32   // interface -> bridge domain
	LCP        map[uint32]string   // interface -> Linux interface
	Supported  map[Capability]bool // what this VPP's message table offers
	Policing   Policing
	Policers   map[string]*Policer // the agent's, by name
	// Policed are interfaces on which a policer is applied to what comes in; of PolicedUnknown VPP does not say.
	Policed, PolicedUnknown map[uint32]bool
	// Classified are interfaces that VPP polices by a classify table of the agent's; of ClassifiedUnknown VPP does not say.
	Classified, ClassifiedUnknown map[uint32]bool
	Classifiers
	Bonds Bonds
	Uses  map[uint32]Use // of the ports that ReadPortUses has read

	byIndex map[uint32]*Interface
	byName  map[string]*Interface
	subs    map[uint32][]*Interface // sub-interfaces of a port, sorted by index
	local   map[tableAddress]*Interface

	prefixes map[uint32][]netip.Prefix // addresses while they are being read, by interface
}

// tableAddress is an address in a table of its family.
type tableAddress struct {
	table   uint32
	address netip.Addr
}

// Capability is something that a VPP does and another does not: a set of messages that belong together, or a version.
type Capability string

const (
	CanL2XC    Capability = "l2xc"
	CanVXLAN   Capability = "vxlan"
	CanGENEVE  Capability = "geneve"
	CanGRE     Capability = "gre"
	CanGREKeys Capability = "gre_keys"   // several GRE tunnels between two addresses, told apart by their keys
	CanTest    Capability = "line_tests" // send test frames
	CanWatch   Capability = "path_watch" // watch paths by multihop BFD
	// CanPoliceHostInterfaces is false up to 24.02, whose af_packet takes frames past the features of the port's input:
	// VPP says that a policer works there, and none does ("af_packet: fix the device input feature arc support", 24.06).
	CanPoliceHostInterfaces Capability = "host_interface_policing"
)

// Index prepares the look-ups. Whoever fills or changes the exported fields calls it afterwards. What a VPP named twice
// is there once.
func (s *Snapshot) Index() *Snapshot {
	slices.SortFunc(s.Interfaces, func(a, b *Interface) int { return int(int64(a.Index) - int64(b.Index)) })
	s.Interfaces = slices.CompactFunc(s.Interfaces, func(a, b *Interface) bool { return a.Index == b.Index })
	slices.SortFunc(s.Tunnels, func(a, b *Tunnel) int { return int(int64(a.Index) - int64(b.Index)) })
	s.Tunnels = slices.CompactFunc(s.Tunnels, func(a, b *Tunnel) bool { return a.Index == b.Index })
	s.byIndex = make(map[uint32]*Interface, len(s.Interfaces))
	s.byName = make(map[string]*Interface, len(s.Interfaces))
	s.subs = make(map[uint32][]*Interface)
	for _, i := range s.Interfaces {
		s.byIndex[i.Index] = i
		if there := s.byName[i.Name]; there == nil || there.IsSub() { // a port may have the name of another one's sub-interface
			s.byName[i.Name] = i
		}
		if i.IsSub() {
			s.subs[i.Sup] = append(s.subs[i.Sup], i)
		}
	}
	return s.indexAddresses()
}

// takeAddresses gives the interfaces the addresses that were read.
func (s *Snapshot) takeAddresses() *Snapshot {
	for index, prefixes := range s.prefixes {
		if i := s.ByIndex(index); i != nil {
			i.Addresses = prefixes
		}
	}
	s.prefixes = nil
	return s.indexAddresses()
}

func (s *Snapshot) indexAddresses() *Snapshot {
	s.local = make(map[tableAddress]*Interface)
	for _, i := range s.Interfaces {
		for _, prefix := range i.Addresses {
			at := tableAddress{i.TableOf(prefix.Addr()), prefix.Addr()}
			if there := s.local[at]; there == nil || !there.AdminUp {
				s.local[at] = i
			}
		}
	}
	return s
}

// ByIndex returns nil when there is no such interface.
func (s *Snapshot) ByIndex(index uint32) *Interface { return s.byIndex[index] }

// TunnelAt returns nil when the interface is no tunnel.
func (s *Snapshot) TunnelAt(index uint32) *Tunnel {
	at, there := slices.BinarySearchFunc(s.Tunnels, index, func(t *Tunnel, index uint32) int { return cmp.Compare(t.Index, index) })
	if !there {
		return nil
	}
	return s.Tunnels[at]
}

// ByName returns nil when there is no such interface.
func (s *Snapshot) ByName(name string) *Interface { return s.byName[name] }

// Subs lists the sub-interfaces of a port.
func (s *Snapshot) Subs(port uint32) []*Interface { return s.subs[port] }

// ByAddress is the interface with the address in that table of its family, one that is up where there are several; nil
// when there is none.
func (s *Snapshot) ByAddress(table uint32, address netip.Addr) *Interface {
	return s.local[tableAddress{table, address}]
}

// HasAddress reports whether any interface has the address, in whatever table.
func (s *Snapshot) HasAddress(address netip.Addr) bool {
	return slices.ContainsFunc(s.Interfaces, func(i *Interface) bool {
		return slices.ContainsFunc(i.Addresses, func(prefix netip.Prefix) bool { return prefix.Addr() == address })
	})
}

// Family is the place of the address's family in pairs: 0 for IPv4, 1 for IPv6.
func Family(address netip.Addr) int {
	if address.Is6() {
		return 1
	}
	return 0
}

// TableOf is the table in which the interface has, or would have, the address.
func (i *Interface) TableOf(address netip.Addr) uint32 { return i.Tables[Family(address)] }
