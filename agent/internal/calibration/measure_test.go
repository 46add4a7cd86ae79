package calibration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/pg"

	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
	"longline.dev/agent/internal/vppsim"
)

// few is enough for a functional test; the tests do not check the numbers of clocks.
var few = Options{Rounds: 1, Frames: 4 * 256}

func dial(t *testing.T, socket, stats string) *vpp.Session {
	t.Helper()
	session, err := vpp.Dialer{Socket: socket, Timeout: realvpp.ReplyTimeout, BootMS: func(ctx context.Context) (int64, error) {
		return statseg.BootTime(ctx, stats)
	}}.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return session
}

// real connects to a real VPP that has a foreign tunnel, generator and table.
func real(t *testing.T, options realvpp.Options) *vpp.Session {
	t.Helper()
	v := realvpp.StartOrSkip(t, options)
	for _, line := range []string{
		"create packet-generator interface pg7",
		"set interface state pg7 up",
		"ip table add 7",
		"create loopback interface",
		"set interface ip address loop0 192.0.2.1/24", // the address of the loop, in the main table
		"set interface state loop0 up",
	} {
		if _, err := v.CLI(line); err != nil {
			t.Fatal(err)
		}
	}
	session := dial(t, v.APISocket(), v.StatsSocket())
	if lacks := vpp.Missing(session.Has, needed...); lacks != "" {
		t.Skipf("SKIPPED ON THIS VPP: it has no message %s", lacks)
	}
	return session
}

var withTunnels = realvpp.Options{Plugins: []string{"vxlan", "geneve", "gre"}}

// state returns the visible state of VPP without counters.
func state(t *testing.T, session *vpp.Session) string {
	t.Helper()
	var all strings.Builder
	for _, line := range []string{
		"show interface address", "show mode", "show packet-generator", "show ip table", "show ip6 table", "show ip neighbors", "show vxlan tunnel",
		"show geneve tunnel", "show gre tunnel",
	} {
		said, _, err := vpp.RunCLI(t.Context(), session, line)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s\n%s\n", line, said)
	}
	return all.String()
}

func TestMeasureReturnsTheNodesOfEachTransport(t *testing.T) {
	session := real(t, withTunnels)
	before := state(t, session)
	result, err := Measure(t.Context(), session, few)
	if err != nil {
		t.Fatal(err)
	}
	encapsulating := map[Transport]string{
		L2XC: "l2-output", "vxlan4": "vxlan4-encap", "vxlan6": "vxlan6-encap", "geneve4": "geneve4-encap", "geneve6": "geneve6-encap",
		"gre4": "gre-teb-encap", "gre6": "gre-teb-encap",
	}
	for n, f := range result.Figures {
		if f.Transport != Transports[n] {
			t.Errorf("figure %d is of %s", n, f.Transport)
		}
		names := make([]string, 0, len(f.Nodes))
		for _, node := range f.Nodes {
			names = append(names, node.Name)
			if node.Clocks <= 0 {
				t.Errorf("%s: %s takes %g clocks", f.Transport, node.Name, node.Clocks)
			}
		}
		for _, name := range []string{"ethernet-input", "l2-input", encapsulating[f.Transport]} {
			if !slices.Contains(names, name) {
				t.Errorf("%s: no %s among %v", f.Transport, name, names)
			}
		}
		if slices.ContainsFunc(names, func(name string) bool { return name == "pg-input" || strings.HasSuffix(name, "-tx") }) {
			t.Errorf("%s: the generator or the driver counts: %v", f.Transport, names)
		}
		if f.Least <= 0 || f.Clocks < f.Least || f.Most < f.Clocks {
			t.Errorf("%s: %g is not between %g and %g", f.Transport, f.Clocks, f.Least, f.Most)
		}
	}
	if len(result.Figures) != len(Transports) || len(result.Missing) != 0 || result.ClockRate < 1e8 || result.CPU == "" {
		t.Errorf("got %+v", result)
	}
	if after := state(t, session); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

func TestMeasureOmitsTransportsOfMissingPlugins(t *testing.T) {
	result, err := Measure(t.Context(), real(t, realvpp.Options{Plugins: []string{"vxlan"}}), few)
	if err != nil {
		t.Fatal(err)
	}
	var measured []Transport
	for _, f := range result.Figures {
		measured = append(measured, f.Transport)
	}
	if !slices.Equal(measured, []Transport{L2XC, "vxlan4", "vxlan6"}) || result.Missing["geneve4"] != "geneve_add_del_tunnel2" || len(result.Missing) != 4 {
		t.Errorf("measured %v, missing %v", measured, result.Missing)
	}
}

func TestMeasureCountsFramesOfWorkers(t *testing.T) {
	options := withTunnels
	options.Workers = 1
	session := real(t, options)
	before := state(t, session)
	result, err := Measure(t.Context(), session, few)
	if err != nil || len(result.Figures) != len(Transports) {
		t.Errorf("got %+v, %v", result, err)
	}
	if after := state(t, session); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

var errCutOff = errors.New("cut off")

// endingSession ends after that many requests. answered says whether VPP received the last one.
type endingSession struct {
	*vpp.Session
	left     int
	answered bool
}

func (s *endingSession) next(do func() error) error {
	if s.left--; s.left >= 0 {
		return do()
	}
	if s.left == -1 && s.answered {
		_ = do()
	}
	return errCutOff
}

func (s *endingSession) Call(ctx context.Context, request api.Message) (reply api.Message, err error) {
	err = s.next(func() error { reply, err = s.Session.Call(ctx, request); return err })
	return reply, err
}

func (s *endingSession) Dump(ctx context.Context, requests []api.Message, each func(api.Message)) error {
	return s.next(func() error { return s.Session.Dump(ctx, requests, each) })
}

func TestMeasureCleansUpAfterAnInterruptionAtAnyMessage(t *testing.T) {
	session := real(t, withTunnels)
	before := state(t, session)
	for _, answered := range []bool{false, true} {
		for after, through := 0, false; !through; after++ {
			_, err := Measure(t.Context(), &endingSession{Session: session, left: after, answered: answered}, few)
			if through = err == nil; !through && !errors.Is(err, errCutOff) {
				t.Fatalf("after %d messages: %v", after, err)
			}
			if err := Tidy(t.Context(), session); err != nil {
				t.Fatalf("after %d messages (the last one was received: %v): %v", after, answered, err)
			}
			if now := state(t, session); now != before {
				t.Fatalf("after %d messages (the last one was received: %v)\ngot  %s\nwant %s", after, answered, now, before)
			}
			if after > 500 {
				t.Fatal("there cannot be so many messages")
			}
		}
	}
}

func TestCancelledMeasureCleansUp(t *testing.T) {
	session := real(t, withTunnels)
	before := state(t, session)
	for wait := range 8 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(wait)*25*time.Millisecond)
		if _, err := Measure(ctx, session, Options{Rounds: 1_000_000, Frames: 256}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		cancel()
		if now := state(t, session); now != before {
			t.Fatalf("after %d ms\ngot  %s\nwant %s", wait*25, now, before)
		}
	}
}

func TestMeasureDoesNotChangeForeignObjectsWithReservedNames(t *testing.T) {
	session := real(t, withTunnels)
	for name, theirs := range map[string]struct{ make, undo api.Message }{
		"a generator": {&pg.PgCreateInterfaceV3{InterfaceID: source.id}, nil},
		"a table": {
			&ip.IPTableAddDel{IsAdd: true, Table: ip.IPTable{TableID: tableID, Name: "customers"}},
			&ip.IPTableAddDel{Table: ip.IPTable{TableID: tableID}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			reply, err := vpp.Do(t.Context(), session, theirs.make)
			if err != nil {
				t.Fatal(err)
			}
			if made, ok := reply.(*pg.PgCreateInterfaceV3Reply); ok {
				theirs.undo = &pg.PgDeleteInterface{SwIfIndex: made.SwIfIndex}
				if _, err := vpp.Do(t.Context(), session, &interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: made.SwIfIndex, Tag: "lab"}); err != nil {
					t.Fatal(err)
				}
			}
			before := state(t, session)
			var cannot *CannotError
			if _, err := Measure(t.Context(), session, few); !errors.As(err, &cannot) || !strings.Contains(err.Error(), "another client") {
				t.Errorf("error %v", err)
			}
			if after := state(t, session); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
			if _, err := vpp.Do(t.Context(), session, theirs.undo); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestMeasureChangesNothingWithoutAPacketGenerator(t *testing.T) {
	sim, err := vppsim.Start(t.Context(), vppsim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Stop)
	session := dial(t, sim.APISocket(), sim.StatsSocket())
	before := sim.Interfaces()
	var cannot *CannotError
	if _, err := Measure(t.Context(), session, few); !errors.As(err, &cannot) || !strings.Contains(err.Error(), "has no message") {
		t.Errorf("error %v", err)
	}
	if err := Tidy(t.Context(), session); err != nil {
		t.Error(err)
	}
	if after := sim.Interfaces(); !slices.Equal(after, before) {
		t.Errorf("interfaces %v, then %v", before, after)
	}
}
