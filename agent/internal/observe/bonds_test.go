package observe

import "testing"

// TestSpeedOfABond: VPP reports how many members are active but not which, so the slowest count first.
func TestSpeedOfABond(t *testing.T) {
	const g = 1_000_000_000
	for name, c := range map[string]struct {
		speeds [3]uint64 // of members with a link; 1 is a member without one
		active uint32
		want   uint64
	}{
		"all active":                            {[3]uint64{10 * g, 10 * g, 10 * g}, 3, 30 * g},
		"one without a link":                    {[3]uint64{10 * g, 1, 10 * g}, 2, 20 * g},
		"a link whose partner is out of step":   {[3]uint64{10 * g, 10 * g, 10 * g}, 2, 20 * g},
		"the fast one may be the one that left": {[3]uint64{25 * g, 10 * g, 1}, 1, 10 * g},
		"an unknown speed":                      {[3]uint64{10 * g, 0, 10 * g}, 3, 0},
		"none active":                           {[3]uint64{10 * g, 10 * g, 10 * g}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Snapshot{Interfaces: []*Interface{{Index: 9, Sup: 9, Name: "BondEthernet0", Device: BondDevice, AdminUp: true, LinkUp: true}}}
			s.Bonds = Bonds{Of: make(map[uint32]uint32), Members: make(map[uint32][]uint32)}
			for n, speed := range c.speeds {
				index := uint32(n + 1)
				s.Interfaces = append(s.Interfaces, &Interface{
					Index: index, Sup: index, Device: "dpdk", AdminUp: true, LinkUp: speed != 1, SpeedBPS: speed,
				})
				s.Bonds.Of[index], s.Bonds.Members[9] = 9, append(s.Bonds.Members[9], index)
			}
			s.Index()
			before := s.ByIndex(9)
			s.linkBonds(map[uint32]uint32{9: c.active})
			bond := s.ByIndex(9)
			if bond.SpeedBPS != c.want || bond.LinkUp != (c.active > 0) {
				t.Errorf("the bond runs at %d bit/s, want %d; link %v", bond.SpeedBPS, c.want, bond.LinkUp)
			}
			if before.SpeedBPS != 0 {
				t.Error("an earlier snapshot was changed")
			}
		})
	}
}
