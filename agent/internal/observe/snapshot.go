// Package observe reads the configuration of VPP: everything that package plan needs.
package observe

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/tunnel"
	"longline.dev/agent/internal/vpp"
)

// NoIndex is the interface index with which VPP means "no interface".
const NoIndex = ^uint32(0)

// Interface is one VPP interface: a port, a sub-interface, a tunnel or a loopback.
type Interface struct {
	Index uint32
	Name  string
	Tag   string
	// Device is VPP's device class: "af-packet", "dpdk", "VXLAN", "Loopback", ...
	Device string
	Sup    uint32 // index of the port of a sub-interface; for all other interfaces the same as Index

	AdminUp, LinkUp bool
	L3MTU           uint32 // 0 if not set
	LinkMTU         uint32 // largest frame of the device, as VPP counts it; 0 if unknown
	IP4MTU, IP6MTU  uint32
	SpeedBPS        uint64  // speed of the link (bit/s), 0 if VPP does not know it
	MAC             [6]byte // zero for a sub-interface, and if the interface has no MAC address

	Sub     SubInterface // zero if the interface is not a sub-interface
	Rewrite uint32       // VPP's tag rewrite operation: 0 none, 3 pop one, 4 pop two

	Addresses []netip.Prefix // not read for interfaces that the agent created
	// Tables are the IDs of the interface's IPv4 table and IPv6 table. A table is read only if the interface has
	// addresses of that family.
	Tables [2]uint32
}

// Same reports whether i and other have the same tag and the same values of the properties that are fixed at
// creation. The tag helps to recognize an interface, because VPP deletes the tag together with the interface.
func (i *Interface) Same(other *Interface) bool {
	return i.Index == other.Index && i.Name == other.Name && i.Tag == other.Tag && i.Device == other.Device && i.Sup == other.Sup &&
		i.Sub == other.Sub
}

// SubInterface says which frames a sub-interface accepts from its port.
type SubInterface struct {
	ID           uint32
	Tags         uint8
	Dot1ad       bool
	Exact        bool
	Outer, Inner uint16
	Selection    Selection
}

// Selection is the criterion by which a sub-interface accepts frames.
type Selection uint8

const (
	ByVLANs       Selection = iota // exact VLAN numbers
	AnyInner                       // any inner VLAN under an outer VLAN
	AnyOuter                       // any outer VLAN; VPP refuses most of these as "not implemented yet"
	DefaultSub                     // every tagged frame that no other sub-interface accepts
	UntaggedSub                    // frames without a tag
	OtherThanTags                  // the sender's MAC address (p2p_ethernet), or a criterion of a later VPP
)

// Wide reports whether the sub-interface selects frames by something other than one TPID with given VLANs.
func (s SubInterface) Wide() bool { return s.Selection != ByVLANs }

// Frames returns the frames that the sub-interface accepts from its port.
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

// IsSub reports whether the interface is a sub-interface.
func (i *Interface) IsSub() bool { return i.Sup != i.Index }

// Tunnel is a tunnel that exists in VPP.
type Tunnel = tunnel.Found

// Snapshot is VPP's state at one moment, without the generator of the agent's test frames.
type Snapshot struct {
	Boot       ownership.Boot
	Epoch      int64               // epoch of VPP's stats segment before any interface was read; 0 if unknown
	Interfaces []*Interface        // sorted by index
	Tunnels    []*Tunnel           // sorted by index
	Connects   map[uint32]uint32   // L2 cross-connects: receiving -> sending interface
	Bridged    map[uint32]uint32   // interface -> bridge domain
	LCP        map[uint32]string   // interface -> Linux interface
	Supported  map[Capability]bool // according to this VPP's message table
	Policing   Policing
	Policers   map[string]*Policer // the agent's policers, by name
	// Policed lists interfaces on which a policer works on received frames. PolicedUnknown lists interfaces
	// for which VPP does not report whether a policer works.
	Policed, PolicedUnknown map[uint32]bool
	// Classified lists interfaces that VPP polices with a classify table of the agent. ClassifiedUnknown lists
	// interfaces for which VPP does not report whether the bound table works.
	Classified, ClassifiedUnknown map[uint32]bool
	Classifiers
	Bonds Bonds
	Uses  map[uint32]Use // uses of the ports that ReadPortUses has read

	byIndex map[uint32]*Interface
	byName  map[string]*Interface
	subs    map[uint32][]*Interface // sub-interfaces of a port, sorted by index
	local   map[tableAddress]*Interface

	prefixes map[uint32][]netip.Prefix // addresses while they are being read, by interface
}

// tableAddress is an address in one of the tables of its address family.
type tableAddress struct {
	table   uint32
	address netip.Addr
}

// Capability is a feature that only some VPPs have. A VPP has the feature if it has certain messages or a
// certain version. The support of an encapsulation has the name of the encapsulation.
type Capability string

const (
	CanGREKeys Capability = "gre_keys"         // several GRE tunnels between two addresses, distinguished by their keys
	CanTest    Capability = "activation_tests" // send test frames
	CanWatch   Capability = "path_watch"       // monitor paths with multihop BFD
	// CanPoliceHostInterfaces is false up to 24.02. In these versions, frames that af_packet receives bypass the
	// input features of the port. VPP reports that a policer works on such a port, but the policer does not
	// work ("af_packet: fix the device input feature arc support", 24.06).
	CanPoliceHostInterfaces Capability = "host_interface_policing"
)

// Index sorts interfaces and tunnels, removes duplicates and prepares the lookups. Call it after changes of
// the exported fields. It returns s.
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
		if other := s.byName[i.Name]; other == nil || other.IsSub() { // a port may have the same name as a sub-interface of another port
			s.byName[i.Name] = i
		}
		if i.IsSub() {
			s.subs[i.Sup] = append(s.subs[i.Sup], i)
		}
	}
	return s.indexAddresses()
}

// takeAddresses copies the addresses that have been read to their interfaces. It returns s.
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
			if other := s.local[at]; other == nil || !other.AdminUp {
				s.local[at] = i
			}
		}
	}
	return s
}

// ByIndex returns the interface with this index, or nil if there is none.
func (s *Snapshot) ByIndex(index uint32) *Interface { return s.byIndex[index] }

// NameOf returns the name of the interface with this index, or its index if there is no such interface.
func (s *Snapshot) NameOf(index uint32) string {
	if i := s.ByIndex(index); i != nil {
		return i.Name
	}
	return fmt.Sprintf("sw_if_index %d", index)
}

// TunnelAt returns the tunnel of the interface with this index, or nil if the interface is not a tunnel.
func (s *Snapshot) TunnelAt(index uint32) *Tunnel {
	at, found := slices.BinarySearchFunc(s.Tunnels, index, func(t *Tunnel, index uint32) int { return cmp.Compare(t.Index, index) })
	if !found {
		return nil
	}
	return s.Tunnels[at]
}

// ByName returns the interface with this name, or nil if there is none.
func (s *Snapshot) ByName(name string) *Interface { return s.byName[name] }

// Subs returns the sub-interfaces of a port.
func (s *Snapshot) Subs(port uint32) []*Interface { return s.subs[port] }

// ByAddress returns the interface that has the address in this table of the address's family, or nil if there
// is no such interface. If several interfaces have the address, ByAddress prefers an interface that is up.
func (s *Snapshot) ByAddress(table uint32, address netip.Addr) *Interface {
	return s.local[tableAddress{table, address}]
}

// HasAddress reports whether any interface has the address, in any table.
func (s *Snapshot) HasAddress(address netip.Addr) bool {
	return slices.ContainsFunc(s.Interfaces, func(i *Interface) bool {
		return slices.ContainsFunc(i.Addresses, func(prefix netip.Prefix) bool { return prefix.Addr() == address })
	})
}

// Family returns the position of the address's family in pairs such as Interface.Tables: 0 for IPv4, 1 for
// IPv6.
func Family(address netip.Addr) int {
	if address.Is6() {
		return 1
	}
	return 0
}

// TableOf returns the table in which the interface has, or would have, the address.
func (i *Interface) TableOf(address netip.Addr) uint32 { return i.Tables[Family(address)] }

func interfaceOf(m *interfaces.SwInterfaceDetails) *Interface {
	i := &Interface{
		Index: uint32(m.SwIfIndex), Sup: m.SupSwIfIndex,
		Name: vpp.Text(m.InterfaceName), Tag: vpp.Text(m.Tag), Device: vpp.Text(m.InterfaceDevType),
		AdminUp: m.Flags&interface_types.IF_STATUS_API_FLAG_ADMIN_UP != 0,
		LinkUp:  m.Flags&interface_types.IF_STATUS_API_FLAG_LINK_UP != 0,
		Rewrite: m.VtrOp, LinkMTU: uint32(m.LinkMtu), MAC: m.L2Address,
	}
	if m.LinkSpeed != math.MaxUint32 { // MaxUint32 also means unknown: format_vnet_hw_interface_link_speed
		i.SpeedBPS = uint64(m.LinkSpeed) * 1000 // VPP counts in kbit/s
	}
	if len(m.Mtu) >= 3 { // [L3, IPv4, IPv6, MPLS]
		i.L3MTU, i.IP4MTU, i.IP6MTU = m.Mtu[0], m.Mtu[1], m.Mtu[2]
	}
	if i.IsSub() {
		i.Sub = SubInterface{
			ID: m.SubID, Tags: m.SubNumberOfTags, Outer: m.SubOuterVlanID, Inner: m.SubInnerVlanID,
			Dot1ad:    m.SubIfFlags&interface_types.SUB_IF_API_FLAG_DOT1AD != 0,
			Exact:     m.SubIfFlags&interface_types.SUB_IF_API_FLAG_EXACT_MATCH != 0,
			Selection: selectionOf(m),
		}
	}
	return i
}

// selectionOf returns the criterion by which a sub-interface selects its frames. It checks the flags in the
// same order as VPP (ethernet_sw_interface_get_config in vnet/ethernet/node.c).
func selectionOf(m *interfaces.SwInterfaceDetails) Selection {
	has := func(flag interface_types.SubIfFlags) bool { return m.SubIfFlags&flag != 0 }
	switch {
	case m.Type != interface_types.IF_API_TYPE_SUB:
		return OtherThanTags
	case has(interface_types.SUB_IF_API_FLAG_DEFAULT):
		return DefaultSub
	case m.SubNumberOfTags == 0: // VPP reports no flag for "untagged"
		return UntaggedSub
	case has(interface_types.SUB_IF_API_FLAG_OUTER_VLAN_ID_ANY):
		return AnyOuter
	case has(interface_types.SUB_IF_API_FLAG_INNER_VLAN_ID_ANY):
		return AnyInner
	}
	return ByVLANs
}
