package converge

import (
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"go.fd.io/govpp/adapter"
	"go.fd.io/govpp/adapter/statsclient"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/pg"
	"go.fd.io/govpp/binapi/vlib"

	"longline.dev/agent/internal/intent"
)

// generatedPort creates a port that can receive frames.
func (r *router) generatedPort(id uint32) string {
	r.t.Helper()
	made := r.must(&pg.PgCreateInterfaceV3{InterfaceID: interface_types.InterfaceIndex(id)}).(*pg.PgCreateInterfaceV3Reply)
	r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: made.SwIfIndex, Flags: interface_types.IF_STATUS_API_FLAG_ADMIN_UP})
	return fmt.Sprintf("pg%d", id)
}

// received returns the number of frames that an interface received.
func (r *router) received(name string) uint64 {
	r.t.Helper()
	index := r.index(name)
	client := statsclient.NewStatsClient(r.stats)
	if err := client.Connect(); err != nil {
		r.t.Fatal(err)
	}
	defer client.Disconnect()
	entries, err := client.DumpStats("^/if/rx$")
	if err != nil || len(entries) != 1 {
		r.t.Fatalf("%v, %d entries", err, len(entries))
	}
	var frames uint64
	for _, thread := range entries[0].Data.(adapter.CombinedCounterStat) {
		if int(index) < len(thread) {
			frames += thread[index].Packets()
		}
	}
	return frames
}

const sentFrames = 100

// send makes a port receive frames, and returns how many of them the interface to received. header follows
// the MAC addresses.
func (r *router) send(port, to, header string) uint64 {
	r.t.Helper()
	if _, err := hex.DecodeString(header); err != nil {
		r.t.Fatal(err)
	}
	before, atPort := r.received(to), r.received(port)
	for _, line := range []string{
		fmt.Sprintf("packet-generator new { name arriving limit %d size 200-200 interface %s node ethernet-input data { hex 0x000000000002000000000001%s88b5 } }",
			sentFrames, port, header),
		"packet-generator enable-stream arriving",
	} {
		if reply := r.must(&vlib.CliInband{Cmd: line}).(*vlib.CliInbandReply); reply.Reply != "" {
			r.t.Fatalf("%s: %s", line, reply.Reply)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); r.received(port)-atPort < sentFrames; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("%s received %d frames", port, r.received(port)-atPort)
		}
	}
	r.must(&vlib.CliInband{Cmd: "packet-generator delete arriving"})
	return r.received(to) - before
}

const (
	oneTag   = interface_types.SUB_IF_API_FLAG_ONE_TAG
	twoTags  = interface_types.SUB_IF_API_FLAG_TWO_TAGS
	exactTag = interface_types.SUB_IF_API_FLAG_EXACT_MATCH
)

// sharedFrames lists foreign sub-interfaces, lines that share frames with them, and a frame that both
// match.
var sharedFrames = map[string]struct {
	theirs interfaces.CreateSubif
	ours   intent.Access
	frame  string // its tags
}{
	"they take one VLAN with further tags": {
		interfaces.CreateSubif{SubID: 9, SubIfFlags: oneTag, OuterVlanID: 100},
		intent.Access{Tagging: intent.QinQ, Outer: 100, Inner: 110, Exact: true}, "810000648100006e"},
	"they take any inner VLAN": {
		interfaces.CreateSubif{SubID: 9, SubIfFlags: twoTags | interface_types.SUB_IF_API_FLAG_INNER_VLAN_ID_ANY, OuterVlanID: 200},
		intent.Access{Tagging: intent.QinQ, Outer: 200, Inner: 110, Exact: true}, "810000c88100006e"},
	"they take one 802.1ad VLAN with further tags": {
		interfaces.CreateSubif{SubID: 9, SubIfFlags: oneTag | interface_types.SUB_IF_API_FLAG_DOT1AD, OuterVlanID: 100},
		intent.Access{Tagging: intent.Dot1ad, Outer: 100, Inner: 110, Exact: true}, "88a800648100006e"},
	"they take all tagged frames that no other sub-interface takes": {
		interfaces.CreateSubif{SubID: 9, SubIfFlags: interface_types.SUB_IF_API_FLAG_DEFAULT},
		intent.Access{Tagging: intent.Dot1q, Outer: 100, Exact: true}, "81000064"},
	"they take two VLANs, and the line further tags": {
		interfaces.CreateSubif{SubID: 9, SubIfFlags: twoTags | exactTag, OuterVlanID: 100, InnerVlanID: 110},
		intent.Access{Tagging: intent.Dot1q, Outer: 100}, "810000648100006e"},
}

// theirSub creates a foreign sub-interface that is up.
func (r *router) theirSub(port string, create interfaces.CreateSubif) string {
	r.t.Helper()
	create.SwIfIndex = r.index(port)
	made := r.must(&create).(*interfaces.CreateSubifReply)
	r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: made.SwIfIndex, Flags: interface_types.IF_STATUS_API_FLAG_ADMIN_UP})
	return fmt.Sprintf("%s.%d", port, create.SubID)
}

func lineOn(port string, access intent.Access) intent.End {
	end := vxlanEnd(1, port)
	end.Access = access
	end.Access.Interface = port
	return end
}

func TestLineThatSharesFramesWithAForeignSubInterfaceIsAConflict(t *testing.T) {
	for name, c := range sharedFrames {
		t.Run(name, func(t *testing.T) {
			onEveryVPP(t, func(t *testing.T, r *router) {
				port := r.generatedPort(7)
				theirs := r.theirSub(port, c.theirs)
				if got := r.send(port, theirs, c.frame); got != sentFrames {
					t.Fatalf("before, they got %d frames", got)
				}
				end := lineOn(port, c.ours)
				e := r.put([]intent.End{end}).of(t, end.Key)
				if e.Status != "conflict" || e.Reason.Code != "foreign_subinterface" || e.Reason.Object != describeInterface(r.snapshot().ByName(theirs)) {
					t.Errorf("the line is %+v %+v", e, e.Reason)
				}
				if got := r.send(port, theirs, c.frame); got != sentFrames {
					t.Errorf("afterwards, they got %d frames of %d", got, sentFrames)
				}
				r.must(&interfaces.DeleteSubif{SwIfIndex: r.index(theirs)})
				r.Converge(t.Context()).mustAllBe(t, "verified")
			})
		})
	}
}

func TestForeignSubInterfaceJustBeforeTheCreationKeepsItsFrames(t *testing.T) {
	for name, c := range sharedFrames {
		t.Run(name, func(t *testing.T) {
			onEveryVPP(t, func(t *testing.T, r *router) {
				port := r.generatedPort(7)
				end, theirs := lineOn(port, c.ours), ""
				session := &sessionWithLateMeddler{Session: r.session}
				session.happen = func() { theirs = r.theirSub(port, c.theirs) }
				r.mu.Lock()
				r.Engine.session = session
				r.mu.Unlock()
				if e := r.put([]intent.End{end}).of(t, end.Key); e.Status != "pending" || e.Reason.Code != "verify_mismatch" {
					t.Errorf("the line is %+v %+v", e, e.Reason)
				}
				if got := countOf(session.sent, "create_subif"); got != 0 {
					t.Errorf("%d sub-interfaces were requested", got)
				}
				if got := r.send(port, theirs, c.frame); got != sentFrames {
					t.Errorf("they got %d frames of %d", got, sentFrames)
				}
			})
		})
	}
}

// TestLineReportsAMoreSpecificForeignSubInterface: a later foreign sub-interface takes frames of the line,
// and the agent does not change it.
func TestLineReportsAMoreSpecificForeignSubInterface(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		port := r.generatedPort(7)
		c := sharedFrames["they take two VLANs, and the line further tags"]
		end := lineOn(port, c.ours)
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		theirs := r.theirSub(port, c.theirs)
		if e := r.Converge(t.Context()).of(t, end.Key); e.Status != "conflict" || e.Reason.Code != "foreign_subinterface" {
			t.Errorf("the line is %+v %+v", e, e.Reason)
		}
		if got := r.send(port, theirs, c.frame); got != sentFrames {
			t.Errorf("they got %d frames of %d", got, sentFrames)
		}
		r.put(nil, tombstone(end)).mustAllBe(t, "removed")
	})
}

// TestSubInterfaceForUntaggedFramesDoesNotConflictWithAVLAN: both stay.
func TestSubInterfaceForUntaggedFramesDoesNotConflictWithAVLAN(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		port := r.generatedPort(7)
		create := &interfaces.CreateSubif{SwIfIndex: r.index(port), SubID: 9, SubIfFlags: interface_types.SUB_IF_API_FLAG_NO_TAGS | exactTag}
		if _, err := r.session.Call(t.Context(), create); err != nil { // VPP refuses the first one and frees the port's own slot
			t.Fatal(err)
		}
		r.must(create)
		r.put([]intent.End{vxlanEnd(1, port)}).mustAllBe(t, "verified")
	})
}
