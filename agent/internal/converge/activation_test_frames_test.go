package converge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/pg"
	"go.fd.io/govpp/binapi/vlib"

	"longline.dev/agent/internal/activationtest"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/vpp"
	"longline.dev/agent/internal/vppsim"
)

// generator is the interface of the agent's packet generator, with its reserved number.
const (
	generatorID = 0x4c4c0000
	generator   = "pg1280049152"
)

func testedEnd(n int, port string) intent.End {
	end := vxlanEnd(n, port)
	end.Testing = true
	return end
}

func frames(end intent.End, count int) *intent.TestFrames {
	return &intent.TestFrames{Key: end.Key, Revision: end.Revision, Frame: 1514, Count: count, Rate: 1000}
}

// leftOfTests returns the objects that tests have left in VPP, as another client sees them.
func (r *router) leftOfTests() string {
	r.t.Helper()
	left := r.must(&vlib.CliInband{Cmd: "show packet-generator"}).(*vlib.CliInbandReply).Reply
	if !strings.Contains(left, "longline") {
		left = ""
	}
	all := []api.Message{&interfaces.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0)}}
	err := r.session.Dump(r.t.Context(), all, func(msg api.Message) {
		if m := msg.(*interfaces.SwInterfaceDetails); strings.HasPrefix(m.InterfaceName, generator) {
			left += m.InterfaceName
		}
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return left
}

func TestSendTestFramesUsesTheTunnelOfATestedEnd(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.needs(t, observe.CanTest)
		end := testedEnd(1, r.ports[0])
		r.put([]intent.End{end, testedEnd(2, r.ports[0])}).mustAllBe(t, "testing")
		before, err := r.SendTestFrames(t.Context(), frames(end, 0))
		if err != nil || before.Sent != 0 || before.VPP.Version == "" || before.AtMS == 0 {
			t.Fatalf("got %+v, %v", before, err)
		}
		observations := r.Status().Statistics.FullObservations
		for n := range uint64(3) {
			result, err := r.SendTestFrames(t.Context(), frames(end, 7))
			if err != nil || result.Sent != 7 || result.Counters.Tx-before.Counters.Tx != 7*(n+1) {
				t.Fatalf("got %+v after %+v, %v", result, before, err)
			}
			if left := r.leftOfTests(); left != "" {
				t.Fatalf("left: %s", left)
			}
		}
		if now := r.Status().Statistics.FullObservations; now != observations {
			t.Errorf("all of VPP was read %d times", now-observations)
		}
		other, err := r.SendTestFrames(t.Context(), frames(testedEnd(2, r.ports[0]), 0))
		if err != nil || other.Counters.Tx != 0 {
			t.Errorf("they went into another tunnel too: %+v, %v", other, err)
		}
		r.put([]intent.End{end, testedEnd(2, r.ports[0])}).mustAllBe(t, "testing")
	})
}

func TestSendTestFramesRefusesEndsThatAreNotUnderTest(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		tested, serving, bare := testedEnd(1, r.ports[0]), vxlanEnd(2, r.ports[0]), testedEnd(3, r.ports[0])
		bare.Tunnel.Local = netip.MustParseAddr("10.255.0.99") // no interface has this address
		far := testedEnd(4, r.ports[0])
		far.Tunnel.Encapsulation, far.Tunnel.Remote = intent.GENEVE, netip.MustParseAddr("10.255.0.77")
		elsewhere := testedEnd(5, r.ports[0])
		elsewhere.Tunnel.Encapsulation, elsewhere.Tunnel.Remote = intent.GENEVE, netip.MustParseAddr("10.255.0.78")
		port := r.snapshot().ByName("loop0")
		r.put([]intent.End{tested, serving, bare, far, elsewhere})
		r.must(&interfaces.SwInterfaceAddDelAddress{SwIfIndex: interface_types.InterfaceIndex(port.Index), IsAdd: true,
			Prefix: ip_types.AddressWithPrefix{Address: vpp.IPAddress(far.Tunnel.Remote), Len: 32}})
		r.must(&interfaces.SwInterfaceAddDelAddress{SwIfIndex: r.makeTable(), IsAdd: true,
			Prefix: ip_types.AddressWithPrefix{Address: vpp.IPAddress(elsewhere.Tunnel.Remote), Len: 32}})
		r.CheckDrift(t.Context())
		older, longer := frames(tested, 1), frames(tested, 1)
		older.Revision, longer.Frame = 7, 1515
		for name, c := range map[string]struct {
			request *intent.TestFrames
			says    string
		}{
			"not stored":                 {frames(vxlanEnd(9, r.ports[0]), 1), "names no VLL end"},
			"in service":                 {frames(serving, 1), "not under test"},
			"another revision":           {older, "at revision 1"},
			"not built":                  {frames(bare, 1), "10.255.0.99"},
			"leading to itself":          {frames(far, 1), "10.255.0.77"},
			"to itself by another table": {frames(elsewhere, 1), "10.255.0.78, the far endpoint of the tunnel, is an address of this router"},
			"a frame that is too long":   {longer, "1514"},
			"not built, only to be read": {frames(bare, 0), "10.255.0.99"},
		} {
			_, err := r.SendTestFrames(t.Context(), c.request)
			var notTesting *NotTestingError
			var tooLong *FrameTooLongError
			if !errors.As(err, &notTesting) && !errors.As(err, &tooLong) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if left := r.leftOfTests(); left != "" {
			t.Errorf("left: %s", left)
		}
		access := r.snapshot().Subs(r.snapshot().ByName(r.ports[0]).Index)[0]
		r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: interface_types.InterfaceIndex(access.Index)})
		var notTesting *NotTestingError
		if _, err := r.SendTestFrames(t.Context(), frames(tested, 1)); !errors.As(err, &notTesting) || !strings.Contains(err.Error(), access.Name) {
			t.Errorf("changed by another client: %v", err)
		}
		r.Attach(nil)
		if _, err := r.SendTestFrames(t.Context(), frames(tested, 1)); !errors.Is(err, ErrNoVPP) {
			t.Errorf("without VPP: %v", err)
		}
	})
}

func TestVPPWithoutAGeneratorStillReportsCounters(t *testing.T) {
	sim, err := vppsim.Start(t.Context(), vppsim.Config{WithoutMessages: []string{"pg_create_interface_v3"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Stop)
	r := newRouter(t, sim.APISocket(), sim.StatsSocket())
	end := testedEnd(1, r.ports[0])
	r.put([]intent.End{end}).mustAllBe(t, "testing")
	var cannot *activationtest.CannotError
	if _, err := r.SendTestFrames(t.Context(), frames(end, 1)); !errors.As(err, &cannot) {
		t.Errorf("got %v", err)
	}
	if _, err := r.SendTestFrames(t.Context(), frames(end, 0)); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestSendTestFramesNeedsRoomInTheStatsSegment(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		end := testedEnd(1, r.ports[0])
		r.put([]intent.End{end}).mustAllBe(t, "testing")
		r.options.FreeInterfaces = func(int64, int) (int, error) { return 0, nil }
		var cannot *activationtest.CannotError
		if _, err := r.SendTestFrames(t.Context(), frames(end, 1)); !errors.As(err, &cannot) {
			t.Errorf("got %v", err)
		}
	})
}

// TestGeneratorIsNotReportedAsAnInterface: while frames are sent, the generator is neither reported nor
// counted as a change.
func TestGeneratorIsNotReportedAsAnInterface(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.needs(t, observe.CanTest)
		r.put([]intent.End{vxlanEnd(1, r.ports[0])}).mustAllBe(t, "verified")
		before := r.snapshot()
		observations := r.Status().Statistics.FullObservations
		made := r.must(&pg.PgCreateInterfaceV3{InterfaceID: generatorID}).(*pg.PgCreateInterfaceV3Reply).SwIfIndex
		for _, tag := range []string{"", "longline:line-test"} {
			if tag != "" {
				r.must(&interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: made, Tag: tag})
			}
			if s := r.snapshot(); s.ByName(generator) != nil || len(s.Interfaces) != len(before.Interfaces) {
				t.Errorf("with the tag %q it is reported", tag)
			}
			r.CheckDrift(t.Context())
			state, err := r.ObservedStateToReport(t.Context())
			if err != nil || len(state.Drift) != 0 || len(state.Plan.Ops) != 0 || len(state.Plan.Blocked) != 0 {
				t.Errorf("taken for a change: %+v, %v", state, err)
			}
		}
		if now := r.Status().Statistics.FullObservations; now != observations {
			t.Errorf("all of VPP was read %d times for it", now-observations)
		}
		r.must(&interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: made, Tag: "lab"})
		if r.snapshot().ByName(generator) == nil {
			t.Error("a foreign interface is hidden")
		}
	})
}

// endingSession is a session that ends after that many requests.
type endingSession struct {
	*vpp.Session
	left int
	// answered means that VPP received the last request.
	answered bool
	ended    bool
}

func (c *endingSession) Err() error {
	if c.ended {
		return errCrash
	}
	return c.Session.Err()
}

// next counts a request. The last request is sent only if answered is set.
func (c *endingSession) next(do func() error) error {
	if c.left--; c.left >= 0 {
		return do()
	}
	if !c.ended && c.answered {
		_ = do()
	}
	c.ended = true
	return errCrash
}

func (c *endingSession) Call(ctx context.Context, request api.Message) (reply api.Message, err error) {
	err = c.next(func() error { reply, err = c.Session.Call(ctx, request); return err })
	return reply, err
}

func (c *endingSession) Calls(ctx context.Context, requests []api.Message) (replies []api.Message, err error) {
	err = c.next(func() error { replies, err = c.Session.Calls(ctx, requests); return err })
	return replies, err
}

func (c *endingSession) Dump(ctx context.Context, requests []api.Message, each func(api.Message)) error {
	return c.next(func() error { return c.Session.Dump(ctx, requests, each) })
}

func (c *endingSession) DumpEach(ctx context.Context, requests []api.Message, each func(int, api.Message)) error {
	return c.next(func() error { return c.Session.DumpEach(ctx, requests, each) })
}

// TestNextConnectionCleansUpAnInterruptedTest interrupts a test after each message.
func TestNextConnectionCleansUpAnInterruptedTest(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.needs(t, observe.CanTest)
		r.furnishForeign()
		foreign := theirs(r.snapshot(), r.ports[0], r.ports[1])
		end := testedEnd(1, r.ports[0])
		r.put([]intent.End{end}).mustAllBe(t, "testing")
		before := r.stateOf(r.snapshot(), foreign)
		for _, answered := range []bool{false, true} {
			through := false
			for after := 0; !through; after++ {
				session := &endingSession{Session: r.session, left: after, answered: answered}
				r.Attach(session)
				_, err := r.SendTestFrames(t.Context(), frames(end, 3))
				if through = err == nil; !through && !errors.Is(err, errCrash) {
					t.Fatalf("after %d messages: %v", after, err)
				}
				when := fmt.Sprintf("after %d messages (the last one got there: %v)", after, answered)
				r.serveUntilTidy(t, when)
				if now := r.stateOf(r.snapshot(), foreign); !maps.Equal(now, before) {
					t.Fatalf("%s\ngot  %v\nwant %v", when, now, before)
				}
				if after > 40 {
					t.Fatal("there cannot be so many messages")
				}
			}
		}
		r.Attach(r.session)
		if result, err := r.SendTestFrames(t.Context(), frames(end, 3)); err != nil || result.Sent != 3 {
			t.Errorf("afterwards: %+v, %v", result, err)
		}
	})
}

// serveUntilTidy connects in the same way as the agent.
func (r *router) serveUntilTidy(t *testing.T, when string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan struct{})
	go func() {
		defer close(served)
		r.Serve(ctx, r.session)
	}()
	for deadline := time.Now().Add(20 * time.Second); r.leftOfTests() != ""; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: left: %s", when, r.leftOfTests())
		}
	}
	cancel()
	<-served
}

// FuzzVPPMessagesDuringATest checks that no result is invented, and that no objects are left or changed.
func FuzzVPPMessagesDuringATest(f *testing.F) {
	for step := byte(1); step < kinds; step++ {
		for n := range 14 {
			f.Add(skip(n, step))
		}
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		sim, err := vppsim.Start(t.Context(), vppsim.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer sim.Stop()
		r := newRouter(t, sim.APISocket(), sim.StatsSocket())
		end := testedEnd(1, r.ports[0])
		r.put([]intent.End{end}).mustAllBe(t, "testing")
		honest, before := r.session, comparable(r.snapshot())
		m := meddle(t, sim.APISocket())
		session := r.dialThrough(m)
		defer session.Close()
		r.Attach(session)
		m.arm(script)
		if result, err := r.SendTestFrames(t.Context(), frames(end, 3)); (result == nil) == (err == nil) || err == nil && result.Sent != 3 {
			t.Errorf("got %+v, %v", result, err)
		}
		r.session = honest
		if err := activationtest.Tidy(t.Context(), honest); err != nil {
			t.Error(err)
		}
		if left := r.leftOfTests(); left != "" {
			t.Errorf("left: %s", left)
		}
		if after := comparable(r.snapshot()); !maps.Equal(after, before) {
			t.Errorf("got  %v\nwant %v", after, before)
		}
	})
}
