package vppcontract

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"testing"

	"go.fd.io/govpp/adapter/socketclient"
	"go.fd.io/govpp/adapter/statsclient"
	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/vpe"
	"go.fd.io/govpp/core"

	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/vppsim"
)

const (
	none     = ^uint32(0)
	anyIndex = interface_types.InterfaceIndex(none)
	up       = interface_types.IF_STATUS_API_FLAG_ADMIN_UP
	linkUp   = interface_types.IF_STATUS_API_FLAG_LINK_UP
	answerIn = realvpp.ReplyTimeout
)

// device is the VPP under test, real or simulated, with one client.
type device struct {
	*testing.T
	socket, stats string
	restart       func() error
	conn          *core.Connection
	client        *socketclient.Client
	standIn       bool
}

// both runs the case on the stand-in and on a real VPP, each freshly started.
func both(t *testing.T, run func(d *device)) {
	t.Helper()
	as(t, "", run)
	t.Run("vpp", func(t *testing.T) { onReal(t, run) })
}

// asEveryRelease runs a case also on a stand-in for 26.06, which behaves differently.
func asEveryRelease(t *testing.T, run func(d *device)) {
	t.Helper()
	both(t, run)
	as(t, "26.06-vppsim", run)
}

// as runs the case on the stand-in for that release.
func as(t *testing.T, version string, run func(d *device)) {
	t.Helper()
	t.Run(cmp.Or(version, "vppsim"), func(t *testing.T) {
		sim, err := vppsim.Start(t.Context(), vppsim.Config{Version: version})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(sim.Stop)
		d := &device{T: t, socket: sim.APISocket(), stats: sim.StatsSocket(), restart: sim.Restart, standIn: true}
		d.connect()
		run(d)
	})
}

// isFrom reports whether it is a VPP of that release or a later one.
func (d *device) isFrom(year, month int) bool {
	d.Helper()
	var itsYear, itsMonth int
	version := do(d, &vpe.ShowVersion{}, &vpe.ShowVersionReply{}).Version
	if _, err := fmt.Sscanf(version, "%d.%d", &itsYear, &itsMonth); err != nil {
		d.Fatalf("version %q", version)
	}
	return itsYear > year || itsYear == year && itsMonth >= month
}

// needs skips the case on a real VPP of an earlier release that lacks one of these messages.
func (d *device) needs(messages ...api.Message) {
	d.Helper()
	for _, m := range messages {
		if _, err := d.client.GetMsgID(m.GetMessageName(), m.GetCrcString()); err != nil && !d.standIn {
			d.Skipf("SKIPPED, NOT SHOWN ON THIS VPP: %v", err)
		}
	}
}

func (d *device) connect() {
	d.Helper()
	d.client = socketclient.NewVppClient(d.socket)
	d.client.SetConnectTimeout(answerIn)
	conn, err := core.Connect(d.client)
	if err != nil {
		d.Fatal(err)
	}
	d.conn = conn
	d.Cleanup(conn.Disconnect)
}

// send sends a request and returns its reply with any return code.
func send[Reply api.Message](d *device, request api.Message, reply Reply) Reply {
	d.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), answerIn)
	defer cancel()
	if err := d.conn.Invoke(ctx, request, reply); err != nil {
		d.Fatalf("%s: %v", request.GetMessageName(), err)
	}
	return reply
}

func retval(reply api.Message) int32 {
	return int32(reflect.ValueOf(reply).Elem().FieldByName("Retval").Int())
}

// do sends a request and requires success.
func do[Reply api.Message](d *device, request api.Message, reply Reply) Reply {
	d.Helper()
	if send(d, request, reply); retval(reply) != 0 {
		d.Fatalf("%s: retval %d", request.GetMessageName(), retval(reply))
	}
	return reply
}

// refused sends a request and requires that return code.
func refused(d *device, request, reply api.Message, want int32) {
	d.Helper()
	if send(d, request, reply); retval(reply) != want {
		d.Errorf("%s: retval %d, want %d", request.GetMessageName(), retval(reply), want)
	}
}

// dump sends the request and a control_ping, and returns the messages before the ping's reply.
func dump[Details api.Message](d *device, request api.Message) []Details {
	d.Helper()
	var collected []Details
	for _, m := range d.untilPing(request) {
		details, ok := m.(Details)
		if !ok {
			d.Fatalf("%s answered %s", request.GetMessageName(), m.GetMessageName())
		}
		collected = append(collected, details)
	}
	return collected
}

func (d *device) untilPing(request api.Message) []api.Message {
	d.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), answerIn)
	defer cancel()
	stream, err := d.conn.NewStream(ctx)
	if err != nil {
		d.Fatal(err)
	}
	defer stream.Close()
	for _, m := range []api.Message{request, &memclnt.ControlPing{}} {
		if err := stream.SendMsg(m); err != nil {
			d.Fatal(err)
		}
	}
	var collected []api.Message
	for {
		m, err := stream.RecvMsg()
		if err != nil {
			d.Fatalf("%s: %v", request.GetMessageName(), err)
		}
		if _, done := m.(*memclnt.ControlPingReply); done {
			return collected
		}
		collected = append(collected, m)
	}
}

// interfaces dumps all interfaces, by name.
func (d *device) interfaces() map[string]*interfaces.SwInterfaceDetails {
	d.Helper()
	byName := map[string]*interfaces.SwInterfaceDetails{}
	for _, i := range dump[*interfaces.SwInterfaceDetails](d, &interfaces.SwInterfaceDump{SwIfIndex: anyIndex}) {
		byName[i.InterfaceName] = i
	}
	return byName
}

// at returns the interface with that index; the test fails if there is none.
func (d *device) at(index interface_types.InterfaceIndex) *interfaces.SwInterfaceDetails {
	d.Helper()
	for _, i := range d.interfaces() {
		if i.SwIfIndex == index {
			return i
		}
	}
	d.Fatalf("there is no interface %d", index)
	return nil
}

// port creates a loopback: the only kind of Ethernet port that needs no hardware.
func (d *device) port() interface_types.InterfaceIndex {
	d.Helper()
	return do(d, &interfaces.CreateLoopbackInstance{}, &interfaces.CreateLoopbackInstanceReply{}).SwIfIndex
}

func (d *device) portUp() interface_types.InterfaceIndex {
	d.Helper()
	port := d.port()
	d.setFlags(port, up)
	return port
}

func (d *device) setFlags(index interface_types.InterfaceIndex, flags interface_types.IfStatusFlags) {
	d.Helper()
	do(d, setFlags(index, flags), &interfaces.SwInterfaceSetFlagsReply{})
}

func setFlags(index interface_types.InterfaceIndex, flags interface_types.IfStatusFlags) api.Message {
	return &interfaces.SwInterfaceSetFlags{SwIfIndex: index, Flags: flags}
}

// subif creates a sub-interface with one exact-match tag; its ID is the VLAN.
func (d *device) subif(port interface_types.InterfaceIndex, vlan uint16) interface_types.InterfaceIndex {
	d.Helper()
	return do(d, createSubif(port, uint32(vlan), vlan), &interfaces.CreateSubifReply{}).SwIfIndex
}

func createSubif(port interface_types.InterfaceIndex, id uint32, vlan uint16) *interfaces.CreateSubif {
	return &interfaces.CreateSubif{SwIfIndex: port, SubID: id, OuterVlanID: vlan,
		SubIfFlags: interface_types.SUB_IF_API_FLAG_ONE_TAG | interface_types.SUB_IF_API_FLAG_EXACT_MATCH}
}

func (d *device) deleteSubif(index interface_types.InterfaceIndex) {
	d.Helper()
	do(d, &interfaces.DeleteSubif{SwIfIndex: index}, &interfaces.DeleteSubifReply{})
}

func address(s string) ip_types.Address {
	a, err := ip_types.ParseAddress(s)
	if err != nil {
		panic(err)
	}
	return a
}

// connectStats maps the stats segment.
func (d *device) connectStats() *statsclient.StatsClient {
	d.Helper()
	client := statsclient.NewStatsClient(d.stats)
	if err := client.Connect(); err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { client.Disconnect() })
	return client
}
