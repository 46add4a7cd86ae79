package vppcontract

import (
	"strings"
	"testing"

	interfaces "go.fd.io/govpp/binapi/interface"
)

func TestLocal0ComesFirst(t *testing.T) {
	both(t, func(d *device) {
		if i := d.at(0); i.InterfaceName != "local0" || i.Flags != 0 {
			d.Errorf("index 0 is %s with flags %v", i.InterfaceName, i.Flags)
		}
	})
}

func TestALoopbackIsDownWithMTU9000(t *testing.T) {
	both(t, func(d *device) {
		i := d.at(d.port())
		if i.InterfaceName != "loop0" || i.InterfaceDevType != "Loopback" {
			d.Errorf("name %q, device %q", i.InterfaceName, i.InterfaceDevType)
		}
		if i.Flags != 0 || i.Mtu[0] != 9000 || i.Tag != "" {
			d.Errorf("flags %v, mtu %v, tag %q", i.Flags, i.Mtu, i.Tag)
		}
		if i.SupSwIfIndex != uint32(i.SwIfIndex) {
			d.Errorf("its port is %d", i.SupSwIfIndex)
		}
	})
}

func TestLinkFollowsAdminOfAPort(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		d.setFlags(port, up)
		if flags := d.at(port).Flags; flags != up|linkUp {
			d.Errorf("up: flags %v", flags)
		}
		d.setFlags(port, 0)
		if flags := d.at(port).Flags; flags != 0 {
			d.Errorf("down: flags %v", flags)
		}
	})
}

func TestALoopbackInstanceIsTakenOnce(t *testing.T) {
	both(t, func(d *device) {
		seven := &interfaces.CreateLoopbackInstance{IsSpecified: true, UserInstance: 7}
		do(d, seven, &interfaces.CreateLoopbackInstanceReply{})
		if d.interfaces()["loop7"] == nil {
			d.Error("there is no loop7")
		}
		refused(d, seven, &interfaces.CreateLoopbackInstanceReply{}, -31)
	})
}

func TestAMissingIndexIsRefused(t *testing.T) {
	both(t, func(d *device) {
		refused(d, setFlags(77, up), &interfaces.SwInterfaceSetFlagsReply{}, -2)
		refused(d, &interfaces.SwInterfaceSetMtu{SwIfIndex: 77, Mtu: make([]uint32, 4)}, &interfaces.SwInterfaceSetMtuReply{}, -2)
		refused(d, &interfaces.SwInterfaceTagAddDel{SwIfIndex: 77, IsAdd: true, Tag: "x"}, &interfaces.SwInterfaceTagAddDelReply{}, -2)
		refused(d, createSubif(77, 1, 1), &interfaces.CreateSubifReply{}, -2)
		refused(d, &interfaces.DeleteSubif{SwIfIndex: 77}, &interfaces.DeleteSubifReply{}, -2)
		refused(d, &interfaces.DeleteLoopback{SwIfIndex: 77}, &interfaces.DeleteLoopbackReply{}, -2)
	})
}

func TestAnMTUIsReadBackAsItWasSet(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		do(d, &interfaces.SwInterfaceSetMtu{SwIfIndex: port, Mtu: []uint32{1600, 0, 0, 0}}, &interfaces.SwInterfaceSetMtuReply{})
		if got := d.at(port); got.Mtu[0] != 1600 || got.Mtu[1] != 0 {
			d.Errorf("mtu %v", got.Mtu)
		}
	})
}

func TestATagIsTruncatedTo63Characters(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		long := strings.Repeat("0123456789", 6) + "abcd"
		do(d, &interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: port, Tag: long}, &interfaces.SwInterfaceTagAddDelReply{})
		if tag := d.at(port).Tag; tag != long[:63] {
			d.Errorf("the tag is %q", tag)
		}
		do(d, &interfaces.SwInterfaceTagAddDel{SwIfIndex: port}, &interfaces.SwInterfaceTagAddDelReply{})
		if tag := d.at(port).Tag; tag != "" {
			d.Errorf("the tag is still %q", tag)
		}
	})
}

func TestATagIsDeletedWithItsInterface(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		sub := d.subif(port, 10)
		do(d, &interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: sub, Tag: "mine"}, &interfaces.SwInterfaceTagAddDelReply{})
		d.deleteSubif(sub)
		again := d.subif(port, 10)
		if again != sub {
			d.Errorf("the index %d was not given out again: %d", sub, again)
		}
		if tag := d.at(again).Tag; tag != "" {
			d.Errorf("the new interface has the old tag %q", tag)
		}
	})
}

func TestAnMTUIsDeletedWithItsInterface(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		sub := d.subif(port, 10)
		do(d, &interfaces.SwInterfaceSetMtu{SwIfIndex: sub, Mtu: []uint32{1400, 0, 0, 0}}, &interfaces.SwInterfaceSetMtuReply{})
		d.deleteSubif(sub)
		if mtu := d.at(d.subif(port, 10)).Mtu[0]; mtu != 0 {
			d.Errorf("the new interface has MTU %d", mtu)
		}
	})
}

func TestTheLastFreedIndexIsAssignedNext(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		first, second, third := d.subif(port, 1), d.subif(port, 2), d.subif(port, 3)
		if second != first+1 || third != second+1 {
			d.Errorf("indices %d, %d, %d do not count up", first, second, third)
		}
		d.deleteSubif(first)
		d.deleteSubif(second)
		if got := d.subif(port, 4); got != second {
			d.Errorf("got %d, want the last freed %d", got, second)
		}
		if got := d.subif(port, 5); got != first {
			d.Errorf("got %d, want %d", got, first)
		}
	})
}

func TestADumpFiltersByNameAndByIndex(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		d.subif(port, 1)
		byName := dump[*interfaces.SwInterfaceDetails](d, &interfaces.SwInterfaceDump{
			SwIfIndex: anyIndex, NameFilterValid: true, NameFilter: "LOOP"})
		if len(byName) != 2 {
			d.Errorf("LOOP finds %d interfaces, want loop0 and loop0.1", len(byName))
		}
		byIndex := dump[*interfaces.SwInterfaceDetails](d, &interfaces.SwInterfaceDump{SwIfIndex: port})
		if len(byIndex) != 1 || byIndex[0].SwIfIndex != port {
			d.Errorf("index %d finds %d interfaces", port, len(byIndex))
		}
	})
}
