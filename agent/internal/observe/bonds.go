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

// takeBonds reads the members of each bond, and whether it has a link. Without a bond it sends nothing. The snapshot has to be
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
	active := make(map[uint32]bool)
	err := session.DumpEach(ctx, dumps, func(at int, msg api.Message) {
		switch m := msg.(type) {
		case *bond.SwMemberInterfaceDetails:
			member, of := uint32(m.SwIfIndex), bonds[at/2]
			s.Bonds.Of[member] = of
			s.Bonds.Members[of] = append(s.Bonds.Members[of], member)
		case *bond.SwBondInterfaceDetails:
			active[uint32(m.SwIfIndex)] = m.ActiveMembers > 0
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
// bond's link with its admin state alone (bond_interface_admin_up_down in vnet/bonding/device.c).
func (s *Snapshot) linkBonds(active map[uint32]bool) {
	changed := false
	for n, i := range s.Interfaces {
		bond := s.ByIndex(i.Sup)
		if bond == nil || bond.Device != BondDevice || i.LinkUp == active[i.Sup] {
			continue
		}
		linked := *i // an earlier snapshot may have the same interface
		linked.LinkUp = active[i.Sup]
		s.Interfaces[n], changed = &linked, true
	}
	if changed {
		s.Index()
	}
}
