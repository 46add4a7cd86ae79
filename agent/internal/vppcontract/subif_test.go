package vppcontract

import (
	"testing"

	"go.fd.io/govpp/adapter"
	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
)

const (
	one    = interface_types.SUB_IF_API_FLAG_ONE_TAG
	two    = interface_types.SUB_IF_API_FLAG_TWO_TAGS
	dot1ad = interface_types.SUB_IF_API_FLAG_DOT1AD
	exact  = interface_types.SUB_IF_API_FLAG_EXACT_MATCH
)

const (
	vlanExists = -56
	tagsTaken  = -1
)

func TestASubinterfaceIsDownWithNoMTU(t *testing.T) {
	both(t, func(d *device) {
		port := d.portUp()
		i := d.at(d.subif(port, 100))
		if i.InterfaceName != "loop0.100" || i.SupSwIfIndex != uint32(port) || i.SubID != 100 {
			d.Errorf("%s, id %d, under %d", i.InterfaceName, i.SubID, i.SupSwIfIndex)
		}
		if i.Type != interface_types.IF_API_TYPE_SUB || i.Flags != linkUp || i.Mtu[0] != 0 {
			d.Errorf("type %v, flags %v, mtu %v", i.Type, i.Flags, i.Mtu)
		}
	})
}

func TestASubinterfaceIsReadBackAsItWasMade(t *testing.T) {
	for name, c := range map[string]struct {
		flags        interface_types.SubIfFlags
		outer, inner uint16
		tags         uint8
	}{
		"dot1q exact":     {one | exact, 100, 0, 1},
		"dot1q not exact": {one, 100, 0, 1},
		"qinq exact":      {two | exact, 100, 200, 2},
		"dot1ad exact":    {two | dot1ad | exact, 100, 200, 2},
		"dot1ad one tag":  {one | dot1ad | exact, 100, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(d *device) {
				made := do(d, &interfaces.CreateSubif{SwIfIndex: d.port(), SubID: 5, SubIfFlags: c.flags,
					OuterVlanID: c.outer, InnerVlanID: c.inner}, &interfaces.CreateSubifReply{})
				i := d.at(made.SwIfIndex)
				if i.SubIfFlags != c.flags || i.SubOuterVlanID != c.outer || i.SubInnerVlanID != c.inner || i.SubNumberOfTags != c.tags {
					d.Errorf("flags %v, outer %d, inner %d, tags %d", i.SubIfFlags, i.SubOuterVlanID, i.SubInnerVlanID, i.SubNumberOfTags)
				}
			})
		})
	}
}

func TestASubIDIsTakenOncePerPort(t *testing.T) {
	both(t, func(d *device) {
		port, other := d.port(), d.port()
		d.subif(port, 100)
		reply := &interfaces.CreateSubifReply{}
		refused(d, createSubif(port, 100, 101), reply, vlanExists)
		do(d, createSubif(other, 100, 100), &interfaces.CreateSubifReply{})
	})
}

func TestTheSameTagsUnderAnotherIDAreRefused(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		d.subif(port, 100)
		refused(d, createSubif(port, 999, 100), &interfaces.CreateSubifReply{}, tagsTaken)
		if got := len(d.interfaces()); got != 3 {
			d.Errorf("there are %d interfaces, want local0, loop0 and loop0.100", got)
		}
	})
}

func TestExactMatchIsNoPartOfTheTags(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		d.subif(port, 100)
		inexact := createSubif(port, 999, 100)
		inexact.SubIfFlags = one
		refused(d, inexact, &interfaces.CreateSubifReply{}, tagsTaken)
	})
}

func TestTheTypeOfTheOuterTagIsPartOfTheTags(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		d.subif(port, 100)
		service := createSubif(port, 999, 100)
		service.SubIfFlags |= dot1ad
		do(d, service, &interfaces.CreateSubifReply{})
	})
}

func TestARefusedSubinterfaceReleasesItsIndex(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		first := d.subif(port, 100)
		refused(d, createSubif(port, 999, 100), &interfaces.CreateSubifReply{}, tagsTaken)
		if got := d.subif(port, 101); got != first+1 {
			d.Errorf("the next index is %d, want %d", got, first+1)
		}
	})
}

func TestDeletingTheFirstFreesItsTagsAfterARefusal(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		first := d.subif(port, 100)
		refused(d, createSubif(port, 999, 100), &interfaces.CreateSubifReply{}, tagsTaken)
		d.deleteSubif(first)
		do(d, createSubif(port, 999, 100), &interfaces.CreateSubifReply{})
	})
}

func TestASubinterfaceCannotGoUpUnderAPortThatIsDown(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		sub := d.subif(port, 100)
		refused(d, setFlags(sub, up), &interfaces.SwInterfaceSetFlagsReply{}, -1)
		d.setFlags(port, up)
		d.setFlags(sub, up)
		if flags := d.at(sub).Flags; flags != up|linkUp {
			d.Errorf("flags %v", flags)
		}
	})
}

func TestASubinterfaceStaysAdminUpWhenItsPortGoesDown(t *testing.T) {
	both(t, func(d *device) {
		port := d.portUp()
		sub := d.subif(port, 100)
		d.setFlags(sub, up)
		d.setFlags(port, 0)
		if flags := d.at(sub).Flags; flags != up {
			d.Errorf("flags %v", flags)
		}
		d.setFlags(port, up)
		if flags := d.at(sub).Flags; flags != up|linkUp {
			d.Errorf("with the port up again: flags %v", flags)
		}
	})
}

func TestDeleteSubifRefusesAPort(t *testing.T) {
	both(t, func(d *device) {
		refused(d, &interfaces.DeleteSubif{SwIfIndex: d.port()}, &interfaces.DeleteSubifReply{}, -98)
	})
}

func TestInnerVLANAnyCannotBeExact(t *testing.T) {
	both(t, func(d *device) {
		var request api.Message = &interfaces.CreateSubif{SwIfIndex: d.port(), SubID: 1, OuterVlanID: 1,
			SubIfFlags: two | exact | interface_types.SUB_IF_API_FLAG_INNER_VLAN_ID_ANY}
		refused(d, request, &interfaces.CreateSubifReply{}, tagsTaken)
	})
}

func TestDeletingAPortDeletesItsSubinterfaces(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		d.subif(port, 1)
		d.subif(port, 2)
		do(d, &interfaces.DeleteLoopback{SwIfIndex: port}, &interfaces.DeleteLoopbackReply{})
		if got := d.interfaces(); len(got) != 1 {
			d.Errorf("%d interfaces are left", len(got))
		}
	})
}

// The evidence is that frames reach the port, are dropped there as frames of an unknown VLAN, and no longer
// reach the sub-interface. Only on the real VPP: in the stand-in no generator sends frames
// (vppsim/forwarding_test.go tests the same there).
func TestARefusedDuplicateStopsReceivedFramesUntilTheFirstIsRecreated(t *testing.T) {
	onReal(t, func(d *device) {
		client := d.connectStats()
		in, out := d.generated()
		first := d.subif(in, 100)
		join := func() {
			d.setFlags(first, up)
			d.xconnect(first, out)
			d.xconnect(out, first)
		}
		type counted struct{ in, out, dropped, unknown uint64 }
		send := func() counted {
			drops := func() uint64 { return uint64(d.stat(client, "/if/drops").(adapter.SimpleCounterStat)[0][in]) }
			unknown := func() uint64 {
				return uint64(d.stat(client, "/err/ethernet-input/unknown vlan").(adapter.SimpleCounterStat)[0][0])
			}
			rx, tx, dropped, unknownBefore := d.combined(client, "/if/rx", uint32(first)), d.combined(client, "/if/tx", uint32(out)), drops(), unknown()
			d.send(client, in, "vlan 100")
			return counted{
				d.combined(client, "/if/rx", uint32(first)).Packets() - rx.Packets(), d.combined(client, "/if/tx", uint32(out)).Packets() - tx.Packets(),
				drops() - dropped, unknown() - unknownBefore,
			}
		}
		join()
		if got, want := send(), (counted{in: frames, out: frames}); got != want {
			d.Errorf("at first %+v, want %+v", got, want)
		}
		refused(d, createSubif(in, 999, 100), &interfaces.CreateSubifReply{}, tagsTaken)
		if got, want := send(), (counted{dropped: frames, unknown: frames}); got != want {
			d.Errorf("after the duplicate %+v, want %+v", got, want)
		}
		d.deleteSubif(first)
		first = d.subif(in, 100)
		join()
		if got, want := send(), (counted{in: frames, out: frames}); got != want {
			d.Errorf("re-created %+v, want %+v", got, want)
		}
	})
}

// TestASecondRequestAfterARefusalGetsTheVLAN: the refusal has freed it.
func TestASecondRequestAfterARefusalGetsTheVLAN(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		d.subif(port, 100)
		refused(d, createSubif(port, 999, 100), &interfaces.CreateSubifReply{}, tagsTaken)
		do(d, createSubif(port, 999, 100), &interfaces.CreateSubifReply{})
	})
}
