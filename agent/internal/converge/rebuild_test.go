package converge

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/fib_types"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/vlib"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
)

const framesEach = 10

// generated sends frames with a VLAN into pg0 of a real VPP, and returns how many of them its sub-interface
// counted.
func (r *router) generated(name string, vlan uint16) (arrived uint64) {
	r.t.Helper()
	segment := statseg.NewReopeningSegment(r.stats)
	defer segment.Close()
	rx := func(name string) uint64 {
		reading, err := segment.Read(r.session.Info().BootMS)
		if err != nil {
			r.t.Fatal(err)
		}
		return reading.Rx[r.index(name)].Packets
	}
	port, before := rx("pg0"), rx(name)
	for _, line := range []string{
		fmt.Sprintf("packet-generator new { name hers limit %d size 100-100 interface pg0 node ethernet-input "+
			"data { IP4: 00:00:00:00:00:01 -> 00:00:00:00:00:02 vlan %d UDP: 192.0.2.1 -> 192.0.2.2 UDP: 1 -> 2 incrementing 54 } }", framesEach, vlan),
		"packet-generator enable-stream hers",
	} {
		r.must(&vlib.CliInband{Cmd: line})
	}
	for deadline := time.Now().Add(10 * time.Second); rx("pg0")-port < framesEach; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatal("the frames never came")
		}
	}
	r.must(&vlib.CliInband{Cmd: "packet-generator delete hers"})
	return rx(name) - before
}

// onEveryVPPWithFrames has a port that can receive frames. takes returns an error if an end's access does
// not accept them.
func onEveryVPPWithFrames(t *testing.T, test func(t *testing.T, r *router, port string, takes func(end intent.End) error)) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.must(&ip.IPRouteAddDel{IsAdd: true, Route: ip.IPRoute{
			Prefix: ip_types.Prefix{Address: vpp.IPAddress(remotes[4]), Len: 32}, NPaths: 1,
			Paths: []fib_types.FibPath{{SwIfIndex: uint32(r.index("loop0")), Weight: 1}},
		}})
		if r.forwards != nil {
			test(t, r, r.ports[0], func(end intent.End) error { return r.forwards(r.accessName(end)) })
			return
		}
		r.must(&vlib.CliInband{Cmd: "create packet-generator interface pg0"})
		r.must(&vlib.CliInband{Cmd: "set interface state pg0 up"})
		test(t, r, "pg0", func(end intent.End) error {
			if arrived := r.generated(r.accessName(end), end.Access.Outer); arrived != framesEach {
				return fmt.Errorf("%d frames of %d were taken", arrived, framesEach)
			}
			return nil
		})
	})
}

// duplicate requests a second sub-interface with the VLAN, like a neighbour. VPP must refuse it.
func (r *router) duplicate(end intent.End) {
	r.t.Helper()
	reply, err := r.session.Call(r.t.Context(), &interfaces.CreateSubif{
		SwIfIndex: r.index(end.Access.Interface), SubID: 999, OuterVlanID: end.Access.Outer, SubIfFlags: 2 | 16,
	})
	if err != nil || reply.(*interfaces.CreateSubifReply).Retval == 0 {
		r.t.Fatalf("a second sub-interface with VLAN %d: %+v, %v", end.Access.Outer, reply, err)
	}
}

func TestRebuildRestoresAVLANAfterARefusedDuplicate(t *testing.T) {
	onEveryVPPWithFrames(t, func(t *testing.T, r *router, port string, takes func(intent.End) error) {
		end, other := vxlanEnd(1, port), vxlanEnd(2, port)
		r.put([]intent.End{end, other}).mustAllBe(t, "verified")
		if err := takes(end); err != nil {
			t.Fatal(err)
		}
		r.duplicate(end)
		if takes(end) == nil {
			t.Fatal("it takes frames all the same")
		}
		r.CheckDrift(t.Context())
		if takes(end) == nil {
			t.Fatal("a dump shows it after all: a search for drift repaired it")
		}
		name, indexOfOther := r.accessName(end), r.index(r.accessName(other))
		_ = r.Rebuild(uint32(r.index(name)), name, false)
		r.CheckDrift(t.Context())
		if err := takes(end); err != nil {
			t.Errorf("after the rebuild: %v", err)
		}
		state, err := r.ObservedStateToReport(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(state.Plan.Ops) != 0 || len(state.Drift) != 0 || len(state.Contested) != 0 {
			t.Errorf("left to do: %v, drift: %v, contested: %v", state.Plan.Ops, state.Drift, state.Contested)
		}
		if state.Made[uint32(r.index(name))] == 0 || r.index(r.accessName(other)) != indexOfOther {
			t.Error("it was not rebuilt, or the other line was")
		}
		writes := r.writes()
		r.CheckDrift(t.Context())
		if r.writes() != writes {
			t.Error("it is rebuilt again")
		}
	})
}

func TestRebuildAcceptsOnlySubInterfacesOfTheAgent(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		end := vxlanEnd(1, r.ports[0])
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		r.lineByHand(r.ports[0], 7, 7)
		writes := r.writes()
		theirs, ours := r.ports[0]+".7", r.accessName(end)
		for _, wrong := range []struct{ at, name string }{
			{theirs, theirs}, {r.ports[0], r.ports[0]}, {r.tunnelOf(end.Key), r.tunnelOf(end.Key)}, {ours, theirs},
		} {
			_ = r.Rebuild(uint32(r.index(wrong.at)), wrong.name, false)
			r.CheckDrift(t.Context())
			if r.writes() != writes {
				t.Errorf("%+v: %d writes", wrong, r.writes()-writes)
			}
		}
	})
}

func TestRebuildUnderReportOnlyNeedsAnOperator(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		end := vxlanEnd(1, r.ports[0])
		r.options.Repair = ReportOnly
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		writes, name := r.writes(), r.accessName(end)
		if err := r.Rebuild(uint32(r.index(name)), name, false); !errors.Is(err, ErrNotRepaired) {
			t.Errorf("got %v", err)
		}
		r.CheckDrift(t.Context())
		if r.writes() != writes {
			t.Errorf("%d writes", r.writes()-writes)
		}
		if err := r.Rebuild(uint32(r.index(name)), name, true); err != nil {
			t.Fatal(err)
		}
		r.CheckDrift(t.Context())
		if r.writes() == writes {
			t.Error("an operator requested it, and it was not rebuilt")
		}
	})
}

// The pause before the next comparison would be half a minute.
func TestRebuildDoesNotWaitForTheNextComparison(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		end := vxlanEnd(1, r.ports[0])
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		name := r.accessName(end)
		index := uint32(r.index(name))
		made := func() int64 {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.made[index]
		}
		before := made()
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan struct{})
		go func() {
			defer close(served)
			r.Serve(ctx, r.session)
		}()
		for deadline := time.Now().Add(20 * time.Second); made() == before; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("it is not rebuilt")
			}
			_ = r.Rebuild(index, name, false)
		}
		cancel()
		<-served
		r.Attach(r.session)
		r.mustForward(t, []intent.End{end})
	})
}
