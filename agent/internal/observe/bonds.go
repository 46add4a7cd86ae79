package observe

import (
	"context"
	"fmt"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/bond"
	"go.fd.io/govpp/binapi/interface_types"
)

// BondDevice is the device class of bonds (vnet/bonding/device.c).
const BondDevice = "bond"

// Bonds are which ports belong to which bond. VPP gives all frames that come in on a member to its bond, before it reads a tag,
// and lets anybody configure the member all the same.
type Bonds struct {
	Of      map[uint32]uint32   // member -> bond
	Members map[uint32][]uint32 // bond -> members, sorted
}

// takeBonds reads the members of each bond, whether it has a link, and how fast that is. Without a bond it sends nothing. The snapshot has to be
// indexed, and is indexed afterwards.
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
	active := make(map[uint32]uint32) // bond -> members that send and receive for it
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
		return fmt.Errorf("bonds: %w", err)
	}
	for _, members := range s.Bonds.Members {
		slices.Sort(members)
	}
	s.linkBonds(active)
	return nil
}

// linkBonds gives each bond, and its sub-interfaces, the link that it has: while a member sends and receives for it. VPP sets a
// bond's link with its admin state alone (bond_interface_admin_up_down in vnet/bonding/device.c), and never its speed.
func (s *Snapshot) linkBonds(active map[uint32]uint32) {
	changed := false
	for n, i := range s.Interfaces {
		bond := s.ByIndex(i.Sup)
		if bond == nil || bond.Device != BondDevice {
			continue
		}
		linked := *i // an earlier snapshot may have the same interface
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

// bondSpeed is the sum of the speeds of so many members with a link, the slowest first: VPP says how many are active, and not which.
// 0: nobody knows.
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
