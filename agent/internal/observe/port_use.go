package observe

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/bond"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
)

// Use describes how another client uses a port, if no other member of the snapshot shows this use.
type Use struct {
	How    string // the rest of a sentence that begins with the port's name
	Object uint32 // the interface that the use concerns
}

// ReadPortUses reads how other clients use ports that a line will use as a whole. It reads only uses that the
// snapshot s does not show. These are addresses borrowed from another interface, an IPv6 link-local address
// as the only address, a table other than 0, and a new policer. It returns a copy of s with these uses, or s
// itself if there are no ports. VPP stops its workers for each request.
func ReadPortUses(ctx context.Context, session Session, s *Snapshot, ports []*Interface) (*Snapshot, error) {
	if len(ports) == 0 {
		return s, nil
	}
	with := *s
	with.Uses, with.Policed, with.PolicedUnknown = make(map[uint32]Use), maps.Clone(s.Policed), maps.Clone(s.PolicedUnknown)
	for _, read := range []func(context.Context, Session, []*Interface) error{
		with.readUnnumbered, with.readTables, with.readLinkLocal, with.readPolicing,
	} {
		if err := read(ctx, session, ports); err != nil {
			return nil, fmt.Errorf("observe the use of ports: %w", err)
		}
	}
	return &with, nil
}

// note stores a use of a port, unless a use of the port is stored already.
func (s *Snapshot) note(port, object uint32, how string, args ...any) {
	if _, known := s.Uses[port]; !known {
		s.Uses[port] = Use{fmt.Sprintf(how, args...), object}
	}
}

func (s *Snapshot) readUnnumbered(ctx context.Context, session Session, ports []*Interface) error {
	if !session.Has(&ip.IPUnnumberedDump{}) {
		return nil
	}
	var dumps []api.Message
	for _, port := range ports {
		dumps = append(dumps, &ip.IPUnnumberedDump{SwIfIndex: interface_types.InterfaceIndex(port.Index)})
	}
	return session.Dump(ctx, dumps, func(msg api.Message) {
		if m, ok := msg.(*ip.IPUnnumberedDetails); ok {
			s.note(uint32(m.SwIfIndex), uint32(m.SwIfIndex), "is unnumbered and uses the addresses of %s", s.NameOf(uint32(m.IPSwIfIndex)))
		}
	})
}

func (s *Snapshot) readTables(ctx context.Context, session Session, ports []*Interface) error {
	if !session.Has(&interfaces.SwInterfaceGetTable{}) {
		return nil
	}
	families := []string{"IPv4", "IPv6"}
	var requests []api.Message
	for _, port := range ports {
		for n := range families {
			requests = append(requests, &interfaces.SwInterfaceGetTable{SwIfIndex: interface_types.InterfaceIndex(port.Index), IsIPv6: n == 1})
		}
	}
	replies, err := session.Calls(ctx, requests)
	for at, reply := range replies {
		if m, ok := reply.(*interfaces.SwInterfaceGetTableReply); ok && m.Retval == 0 && m.VrfID != 0 {
			port := ports[at/len(families)].Index
			s.note(port, port, "is in the %s table %d", families[at%len(families)], m.VrfID)
		}
	}
	return err
}

func (s *Snapshot) readLinkLocal(ctx context.Context, session Session, ports []*Interface) error {
	if !session.Has(&ip.SwInterfaceIP6GetLinkLocalAddress{}) {
		return nil
	}
	var requests []api.Message
	for _, port := range ports {
		requests = append(requests, &ip.SwInterfaceIP6GetLinkLocalAddress{SwIfIndex: interface_types.InterfaceIndex(port.Index)})
	}
	replies, err := session.Calls(ctx, requests)
	for at, reply := range replies {
		if m, ok := reply.(*ip.SwInterfaceIP6GetLinkLocalAddressReply); ok && m.Retval == 0 {
			s.note(ports[at].Index, ports[at].Index, "has IPv6 enabled, with the address %s", m.IP)
		}
	}
	return err
}

func (s *Snapshot) readPolicing(ctx context.Context, session Session, ports []*Interface) error {
	if s.Policing == NoPolicing {
		return nil
	}
	return s.takePoliced(ctx, session, ports)
}

// BondDevice is the device class of bonds (vnet/bonding/device.c).
const BondDevice = "bond"

// Bonds lists the members of bonds. VPP passes all frames that a member receives to the bond before it reads
// the frames' tags. Nevertheless, VPP allows clients to configure a member.
type Bonds struct {
	Of      map[uint32]uint32   // member -> bond
	Members map[uint32][]uint32 // bond -> members, sorted
}

// takeBonds reads the members, the link state and the speed of each bond. It sends no request if there is no
// bond. The snapshot must be indexed before the call, and is indexed again afterwards.
func (s *Snapshot) takeBonds(ctx context.Context, session Session) error {
	s.Bonds = Bonds{Of: make(map[uint32]uint32), Members: make(map[uint32][]uint32)}
	if !session.Has(&bond.SwMemberInterfaceDump{}) || !session.Has(&bond.SwBondInterfaceDump{}) {
		return nil
	}
	var bonds []uint32
	var dumps []api.Message
	for _, i := range s.Interfaces {
		if i.Device == BondDevice && !i.IsSub() {
			at := interface_types.InterfaceIndex(i.Index)
			bonds = append(bonds, i.Index)
			dumps = append(dumps, &bond.SwMemberInterfaceDump{SwIfIndex: at}, &bond.SwBondInterfaceDump{SwIfIndex: at})
		}
	}
	if len(dumps) == 0 {
		return nil
	}
	active := make(map[uint32]uint32) // bond -> number of active members
	err := session.DumpEach(ctx, dumps, func(at int, msg api.Message) {
		switch m := msg.(type) {
		case *bond.SwMemberInterfaceDetails:
			member, of := uint32(m.SwIfIndex), bonds[at/2]
			s.Bonds.Of[member] = of
			s.Bonds.Members[of] = append(s.Bonds.Members[of], member)
		case *bond.SwBondInterfaceDetails:
			active[uint32(m.SwIfIndex)] = m.ActiveMembers
		}
	})
	if err != nil {
		return err
	}
	for _, members := range s.Bonds.Members {
		slices.Sort(members)
	}
	s.linkBonds(active)
	return nil
}

// linkBonds sets the link state and the speed of each bond, and the link state of its sub-interfaces. A bond
// has a link while at least one member is active. VPP itself sets a bond's link state only together with the
// bond's admin state (bond_interface_admin_up_down in vnet/bonding/device.c), and never sets the bond's
// speed.
func (s *Snapshot) linkBonds(active map[uint32]uint32) {
	changed := false
	for n, i := range s.Interfaces {
		bond := s.ByIndex(i.Sup)
		if bond == nil || bond.Device != BondDevice {
			continue
		}
		linked := *i // an earlier snapshot may share this interface
		linked.LinkUp = active[i.Sup] > 0
		if !i.IsSub() {
			linked.SpeedBPS = s.bondSpeed(i.Index, active[i.Sup])
		}
		if linked.LinkUp != i.LinkUp || linked.SpeedBPS != i.SpeedBPS {
			s.Interfaces[n], changed = &linked, true
		}
	}
	if changed {
		s.Index()
	}
}

// bondSpeed returns the lowest possible speed of a bond with this number of active members (bit/s). VPP
// reports the number of active members, but does not name them. So bondSpeed adds the speeds of the slowest
// members with a link. It returns 0 if the speed is unknown.
func (s *Snapshot) bondSpeed(bond uint32, active uint32) uint64 {
	var speeds []uint64
	for _, member := range s.Bonds.Members[bond] {
		if i := s.ByIndex(member); i != nil && i.AdminUp && i.LinkUp {
			speeds = append(speeds, i.SpeedBPS)
		}
	}
	slices.Sort(speeds)
	speeds = speeds[:min(len(speeds), int(active))]
	if slices.Contains(speeds, 0) {
		return 0
	}
	var sum uint64
	for _, speed := range speeds {
		sum += speed
	}
	return sum
}
