package vppcontract

import (
	"encoding/binary"
	"fmt"
	"testing"

	"go.fd.io/govpp/adapter/statsclient"
	"go.fd.io/govpp/binapi/bond"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
)

const (
	defaultSub = interface_types.SUB_IF_API_FLAG_DEFAULT
	noTags     = interface_types.SUB_IF_API_FLAG_NO_TAGS
	innerAny   = interface_types.SUB_IF_API_FLAG_INNER_VLAN_ID_ANY
	outerAny   = interface_types.SUB_IF_API_FLAG_OUTER_VLAN_ID_ANY
)

// vlanTag is one tag of a frame.
type vlanTag struct{ tpid, vlan uint16 }

// arrive sends frames with these tags into the port pgID, and waits until the interface has counted them.
func (d *device) arrive(client *statsclient.StatsClient, id uint32, port index, tags ...vlanTag) {
	d.Helper()
	header := []byte{0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1}
	for _, tag := range tags {
		header = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(header, tag.tpid), tag.vlan)
	}
	header = binary.BigEndian.AppendUint16(header, 0x88b5) // for local experiments
	before := d.combined(client, "/if/rx", uint32(port)).Packets()
	d.quietly(fmt.Sprintf("packet-generator new { name arriving limit %d size %d-%d interface pg%d node ethernet-input data { hex 0x%x } }",
		frames, frameSize, frameSize, id, header))
	d.quietly("packet-generator enable-stream arriving")
	await(d, "the frames arrive", func() bool {
		return d.combined(client, "/if/rx", uint32(port)).Packets()-before >= frames
	})
	await(d, "the stream ends", func() bool { enabled, _ := d.streamOf("arriving"); return enabled == "No" })
	d.quietly("packet-generator delete arriving")
}

// cable creates a port of a packet generator and sets it up.
func (d *device) cable(id uint32) index {
	d.Helper()
	port := d.generator(id)
	d.setFlags(port, up)
	return port
}

func TestTheMostSpecificSubinterfaceGetsAFrame(t *testing.T) {
	type sub struct {
		flags        interface_types.SubIfFlags
		outer, inner uint16
	}
	loose, exactly := sub{one, 100, 0}, sub{one | exact, 100, 0}
	anyInner, pair := sub{two | innerAny, 100, 0}, sub{two | exact, 100, 110}
	pairLoose, service := sub{two, 100, 110}, sub{one | dot1ad, 100, 0}
	servicePair, rest := sub{two | dot1ad | exact, 100, 110}, sub{defaultSub, 0, 0}
	single, double := []vlanTag{{0x8100, 100}}, []vlanTag{{0x8100, 100}, {0x8100, 110}}
	triple := append(double[:2:2], vlanTag{0x8100, 5})
	serviceDouble := []vlanTag{{0x88a8, 100}, {0x8100, 110}}
	const (
		dropped = -1
		onPort  = false
		behind  = true // a bond
	)
	cases := []struct {
		name string
		bond bool
		subs []sub
		tags []vlanTag
		to   int // index in subs
	}{
		{"two tags, further tags welcome", onPort, []sub{loose}, double, 0},
		{"two tags, exact match", onPort, []sub{exactly}, double, dropped},
		{"two tags, a more specific one came later", onPort, []sub{loose, pair}, double, 1},
		{"two tags, any inner VLAN, more specific", onPort, []sub{anyInner, pair}, double, 1},
		{"two tags, any inner VLAN before the outer", onPort, []sub{loose, anyInner}, double, 1},
		{"one tag next to any inner VLAN", onPort, []sub{anyInner, exactly}, single, 1},
		{"one tag, any inner VLAN alone", onPort, []sub{anyInner}, single, dropped},
		{"three tags count as two on a port", onPort, []sub{pair, loose}, triple, 0},
		{"three tags, any inner VLAN", onPort, []sub{anyInner}, triple, 0},
		{"three tags are no exact match of two behind a bond", behind, []sub{pair}, triple, dropped},
		{"three tags past an exact match behind a bond", behind, []sub{pair, loose}, triple, 1},
		{"three tags, two with further tags, behind a bond", behind, []sub{pairLoose}, triple, 0},
		{"two tags behind a bond", behind, []sub{loose, pair}, double, 1},
		{"one tag to default", onPort, []sub{rest}, single, 0},
		{"one tag past default", onPort, []sub{rest, exactly}, single, 1},
		{"two tags to default next to an exact match", onPort, []sub{rest, exactly}, double, 0},
		{"802.1ad to default", onPort, []sub{rest, loose}, serviceDouble, 0},
		{"802.1ad next to 802.1Q", onPort, []sub{loose, service}, serviceDouble, 1},
		{"802.1Q next to 802.1ad", onPort, []sub{service, loose}, double, 1},
		{"802.1ad, a more specific one came later", onPort, []sub{service, servicePair}, serviceDouble, 1},
		{"0x9100 counts as no tag on a port", onPort, []sub{service, loose}, []vlanTag{{0x9100, 100}}, dropped},
		{"0x9100 counts as 802.1Q behind a bond", behind, []sub{service, loose}, []vlanTag{{0x9100, 100}}, 1},
		{"an inner 802.1ad tag is no second tag", onPort, []sub{exactly, pair}, []vlanTag{{0x8100, 100}, {0x88a8, 110}}, 0},
		{"any outer VLAN goes by the outer VLAN all the same", onPort, []sub{{two | outerAny, 100, 110}}, double, 0},
	}
	both(t, func(d *device) {
		client := d.connectStats()
		for n, c := range cases {
			id := uint32(7 + n)
			cable := d.cable(id)
			port := cable
			if c.bond {
				port = d.bondOf(cable)
			}
			var made []index
			for n, s := range c.subs {
				i := do(d, &interfaces.CreateSubif{SwIfIndex: port, SubID: uint32(1 + n), SubIfFlags: s.flags, OuterVlanID: s.outer, InnerVlanID: s.inner},
					&interfaces.CreateSubifReply{}).SwIfIndex
				d.setFlags(i, up)
				made = append(made, i)
			}
			d.arrive(client, id, cable, c.tags...)
			for n, i := range made {
				want := uint64(0)
				if n == c.to {
					want = frames
				}
				if got := d.combined(client, "/if/rx", uint32(i)).Packets(); got != want {
					d.Errorf("%s: sub-interface %d got %d frames, want %d", c.name, n, got, want)
				}
			}
		}
	})
}

// bondOf creates a bond of these ports and sets it up.
func (d *device) bondOf(members ...index) index {
	d.Helper()
	made := do(d, &bond.BondCreate2{Mode: bond.BOND_API_MODE_XOR, ID: none}, &bond.BondCreate2Reply{}).SwIfIndex
	for _, member := range members {
		do(d, &bond.BondAddMember{SwIfIndex: member, BondSwIfIndex: made}, &bond.BondAddMemberReply{})
	}
	d.setFlags(made, up)
	return made
}

func TestSelectionsThatVPPDoesNotImplementAreRefused(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		for n, flags := range []interface_types.SubIfFlags{one | outerAny, two | outerAny | innerAny} {
			refused(d, &interfaces.CreateSubif{SwIfIndex: port, SubID: uint32(1 + n), SubIfFlags: flags}, &interfaces.CreateSubifReply{}, tagsTaken)
		}
		if got := len(d.interfaces()); got != 2 {
			d.Errorf("there are %d interfaces, want local0 and loop0", got)
		}
	})
}

// TestAnUntaggedSubinterfaceReplacesItsPort: the first attempt is refused and frees the key, as with equal
// VLANs.
func TestAnUntaggedSubinterfaceReplacesItsPort(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		create := &interfaces.CreateSubif{SwIfIndex: port, SubID: 1, SubIfFlags: noTags | exact}
		refused(d, create, &interfaces.CreateSubifReply{}, tagsTaken)
		made := do(d, create, &interfaces.CreateSubifReply{}).SwIfIndex
		if i := d.at(made); i.SubIfFlags != exact || i.SubNumberOfTags != 0 { // the dump omits the flag
			d.Errorf("made %+v", i)
		}
	})
}
