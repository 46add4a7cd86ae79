package report

import (
	"context"
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
)

// TestABackboneSubInterfaceIsReportedWithItsMTUItsParentAndItsCounters: a carrier's hand-off is a VLAN of a
// port.
func TestABackboneSubInterfaceIsReportedWithItsMTUItsParentAndItsCounters(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, socket, stats string) {
		session, err := vpp.Dialer{Socket: socket, Timeout: realvpp.ReplyTimeout, BootMS: func(ctx context.Context) (int64, error) {
			return statseg.BootTime(ctx, stats)
		}}.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(session.Close)
		must := func(request api.Message) api.Message {
			t.Helper()
			reply, err := vpp.Do(t.Context(), session, request)
			if err != nil {
				t.Fatal(err)
			}
			return reply
		}
		port := must(&interfaces.CreateLoopbackInstance{IsSpecified: true, UserInstance: 7}).(*interfaces.CreateLoopbackInstanceReply).SwIfIndex
		must(&interfaces.SwInterfaceSetMtu{SwIfIndex: port, Mtu: []uint32{9000, 0, 0, 0}})
		sub := func(vlan uint16) interface_types.InterfaceIndex {
			made := must(&interfaces.CreateSubif{SwIfIndex: port, SubID: uint32(vlan), OuterVlanID: vlan,
				SubIfFlags: interface_types.SUB_IF_API_FLAG_ONE_TAG | interface_types.SUB_IF_API_FLAG_EXACT_MATCH})
			return made.(*interfaces.CreateSubifReply).SwIfIndex
		}
		inherits, own := sub(100), sub(200)
		must(&interfaces.CreateSubif{SwIfIndex: port, SubID: 300, OuterVlanID: 300, SubIfFlags: interface_types.SUB_IF_API_FLAG_ONE_TAG})
		must(&interfaces.CreateSubif{SwIfIndex: port, SubID: 400, OuterVlanID: 400, SubIfFlags: interface_types.SUB_IF_API_FLAG_TWO_TAGS |
			interface_types.SUB_IF_API_FLAG_DOT1AD | interface_types.SUB_IF_API_FLAG_INNER_VLAN_ID_ANY})
		must(&interfaces.SwInterfaceSetMtu{SwIfIndex: own, Mtu: []uint32{1600, 0, 0, 0}})
		for _, index := range []interface_types.InterfaceIndex{port, inherits, own} {
			must(&interfaces.SwInterfaceSetFlags{SwIfIndex: index, Flags: interface_types.IF_STATUS_API_FLAG_ADMIN_UP})
		}
		must(&interfaces.SwInterfaceAddDelAddress{SwIfIndex: inherits, IsAdd: true, Prefix: ip_types.AddressWithPrefix{
			Address: vpp.IPAddress(netip.MustParseAddr("10.0.0.0")), Len: 31}})

		journal, err := ownership.OpenJournal(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		engine := converge.New(intent.OpenStore(t.TempDir(), "rhino"), journal, quiet, time.Now, converge.Options{})
		engine.Attach(session)
		state, err := engine.ObservedState(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var body observedBody
		body.fill(state, false, nil, nil, nil, Loads{}, nil)
		reported := make(map[string]interfaceBody)
		for _, i := range body.Interfaces {
			reported[i.Name] = i
		}
		for name, mtu := range map[string]uint32{"loop7": 9000, "loop7.100": 9000, "loop7.200": 1600} {
			i, is := reported[name]
			if !is || i.IPMTU == nil || *i.IPMTU != mtu {
				t.Errorf("%s: reported %t, with MTU %v, want %d", name, is, i.IPMTU, mtu)
			}
		}
		if parent := reported["loop7.100"].Parent; parent == nil || *parent != "loop7" {
			t.Errorf("the parent of loop7.100 is %v", parent)
		}
		if parent := reported["loop7"].Parent; parent != nil {
			t.Errorf("the parent of loop7 is %s", *parent)
		}
		for name, want := range map[string]string{
			"loop7":     "null",
			"loop7.100": `{"dot1ad":false,"outer":100,"inner":null,"least_tags":1,"most_tags":1}`,
			"loop7.300": `{"dot1ad":false,"outer":300,"inner":null,"least_tags":1,"most_tags":3}`,
			"loop7.400": `{"dot1ad":true,"outer":400,"inner":null,"least_tags":2,"most_tags":3}`,
		} {
			if frames, err := json.Marshal(reported[name].Frames); err != nil || string(frames) != want {
				t.Errorf("%s takes the frames %s, want %s (%v)", name, frames, want, err)
			}
		}
		counted := make(map[string]bool)
		for _, p := range viewOf(state).Ports {
			counted[p.Name] = true
		}
		if !counted["loop7.100"] || counted["loop7.200"] { // the latter has no address, so it may be a customer's
			t.Errorf("counted are %v", counted)
		}
	})
}

// TestTheFramesOfASubInterfaceAreReportedAsThePlanComparesThem: the portal compares the same properties.
func TestTheFramesOfASubInterfaceAreReportedAsThePlanComparesThem(t *testing.T) {
	for want, sub := range map[string]observe.SubInterface{
		`{"dot1ad":false,"outer":100,"inner":7,"least_tags":2,"most_tags":3}`:     {Tags: 2, Outer: 100, Inner: 7},
		`{"dot1ad":null,"outer":null,"inner":null,"least_tags":1,"most_tags":3}`:  {Selection: observe.DefaultSub},
		`{"dot1ad":null,"outer":null,"inner":null,"least_tags":0,"most_tags":0}`:  {Selection: observe.UntaggedSub},
		`{"dot1ad":null,"outer":null,"inner":null,"least_tags":0,"most_tags":3}`:  {Selection: observe.OtherThanTags},
		`{"dot1ad":true,"outer":null,"inner":null,"least_tags":2,"most_tags":3}`:  {Tags: 2, Dot1ad: true, Selection: observe.AnyOuter},
		`{"dot1ad":false,"outer":4095,"inner":null,"least_tags":1,"most_tags":1}`: {Tags: 1, Outer: 4095, Exact: true},
	} {
		if frames, err := json.Marshal(framesOf(sub.Frames())); err != nil || string(frames) != want {
			t.Errorf("%+v takes %s, want %s (%v)", sub, frames, want, err)
		}
	}
}
