package activationtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/pg"
	"go.fd.io/govpp/binapi/vlib"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/vpp"
	"longline.dev/agent/internal/vppsim"
)

// TestLargestFrameThatFitsArrives uses a link of 9,000 bytes and also checks that one byte more is too
// large. The overheads are in docs/reference/mtu.md.
func TestLargestFrameThatFitsArrives(t *testing.T) {
	onEveryPair(t, func(t *testing.T, a, z *router) {
		for _, c := range []struct {
			encapsulation intent.Encapsulation
			family        int
			greKey        uint32
			largest       int
		}{
			{intent.VXLAN, 4, 0, 8964}, {intent.GENEVE, 4, 0, 8964}, {intent.GRE, 4, 0, 8976}, {intent.GRE, 4, 100, 8972},
			{intent.VXLAN, 6, 0, 8944}, {intent.GENEVE, 6, 0, 8944}, {intent.GRE, 6, 0, 8956}, {intent.GRE, 6, 100, 8952},
		} {
			t.Run(fmt.Sprint(c.encapsulation, c.family, " ", c.greKey), func(t *testing.T) {
				end := func(from, to *router) tunnel {
					if c.greKey != 0 {
						return from.greTo(to, c.family, c.greKey)
					}
					return from.tunnelTo(to, c.encapsulation, c.family)
				}
				near, far := end(a, z), end(z, a)
				for name, way := range map[string][2]tunnel{"there": {near, far}, "back": {far, near}} {
					before := way[0].counters().Tx
					for _, size := range []int{64, 1518, c.largest} {
						if got := arrived(t, way[0], way[1], size, 20); got != 20 {
							t.Errorf("%s: %d of 20 frames of %d bytes arrive", name, got, size)
						}
					}
					if got := arrived(t, way[0], way[1], c.largest+1, 20); got != 0 {
						t.Errorf("%s: %d frames of %d bytes arrive", name, got, c.largest+1)
					}
					if sent := way[0].counters().Tx - before; c.encapsulation != intent.GRE && sent < 60 {
						t.Errorf("%s: the tunnel counts %d as sent", name, sent)
					}
				}
			})
		}
		a.mustBeTidy(t, "afterwards")
		z.mustBeTidy(t, "afterwards")
	})
}

// TestFramesOfAGREKeyArriveOnlyAtItsTunnel, although all tunnels are between the same two addresses.
func TestFramesOfAGREKeyArriveOnlyAtItsTunnel(t *testing.T) {
	onEveryPair(t, func(t *testing.T, a, z *router) {
		for _, family := range []int{4, 6} {
			keys := []uint32{0, 100, 200, 1<<32 - 1}
			near, far := make(map[uint32]tunnel), make(map[uint32]tunnel)
			for _, key := range keys {
				near[key], far[key] = a.greTo(z, family, key), z.greTo(a, family, key)
			}
			for _, sent := range keys {
				before := make(map[uint32]uint64)
				for _, key := range keys {
					before[key] = far[key].counters().Rx
				}
				if got := arrived(t, near[sent], far[sent], 1518, 20); got != 20 {
					t.Errorf("IPv%d: %d of 20 frames with the key %d arrive", family, got, sent)
				}
				for _, key := range keys {
					if got := far[key].counters().Rx - before[key]; key != sent && got != 0 {
						t.Errorf("IPv%d: %d frames with the key %d arrive at the tunnel with the key %d", family, got, sent, key)
					}
				}
			}
		}
	})
}

// TestSmallLinkOfTheSenderCausesFragments: the frames arrive nevertheless.
func TestSmallLinkOfTheSenderCausesFragments(t *testing.T) {
	onEveryPair(t, func(t *testing.T, a, z *router) {
		near, far := a.tunnelTo(z, intent.VXLAN, 4), z.tunnelTo(a, intent.VXLAN, 4)
		arrived(t, near, far, 64, 5)
		beforeNear, beforeFar := near.counters(), far.counters()
		a.smallLink(1500)
		if got := arrived(t, near, far, 1464, 10); got != 10 || near.counters().Fragmented != beforeNear.Fragmented {
			t.Errorf("frames that fit: %d of 10 arrive, %+v after %+v", got, near.counters(), beforeNear)
		}
		if got := arrived(t, near, far, 2000, 10); got != 10 {
			t.Errorf("%d of 10 frames arrive in fragments", got)
		}
		if sent := near.counters().Fragmented - beforeNear.Fragmented; sent != 20 {
			t.Errorf("%d fragments were sent, want 20", sent)
		}
		if whole := far.counters().Reassembled - beforeFar.Reassembled; whole != 10 {
			t.Errorf("%d packets were put together, want 10", whole)
		}
	})
}

func TestSendDoesNotChangeForeignGeneratorsAndStreams(t *testing.T) {
	onEveryPair(t, func(t *testing.T, a, z *router) {
		near, far := a.tunnelTo(z, intent.VXLAN, 4), z.tunnelTo(a, intent.VXLAN, 4)
		const stream = "packet-generator new { name theirs%d limit 7 rate 1000 size 64-64 source pg%d node loop0 data { hex 0x00 } }"
		theirs := func(id uint32) *interfaces.SwInterfaceDetails {
			a.must(&pg.PgCreateInterfaceV3{InterfaceID: interface_types.InterfaceIndex(id)})
			if said := a.cli(fmt.Sprintf(stream, id, id)); said != "" {
				t.Fatal(said)
			}
			return a.interfaces()[fmt.Sprint("pg", id)]
		}
		theirs(3)
		hole := a.must(&interfaces.CreateLoopbackInstance{}).(*interfaces.CreateLoopbackInstanceReply).SwIfIndex
		theirs(4)
		a.must(&interfaces.DeleteLoopback{SwIfIndex: hole}) // so that the agent's generator is between the others
		before, streams := a.interfaces(), a.cli("show packet-generator")
		for range 3 {
			if got := arrived(t, near, far, 1518, 10); got != 10 {
				t.Errorf("%d of 10 arrive", got)
			}
		}
		a.mustBeTidy(t, "afterwards")
		after := a.interfaces()
		for _, name := range []string{"pg3", "pg4"} {
			if after[name] == nil || after[name].SwIfIndex != before[name].SwIfIndex || after[name].Flags != before[name].Flags {
				t.Errorf("%s is %+v, was %+v", name, after[name], before[name])
			}
		}
		if now := a.cli("show packet-generator"); now != streams {
			t.Errorf("streams are\n%s\nand were\n%s", now, streams)
		}
		if len(after) != len(before) {
			t.Errorf("%d interfaces, were %d", len(after), len(before))
		}
	})
}

func TestSendRefusesAForeignInterfaceWithTheGeneratorsName(t *testing.T) {
	onEveryPair(t, func(t *testing.T, a, z *router) {
		near := a.tunnelTo(z, intent.VXLAN, 4)
		made := a.must(&pg.PgCreateInterfaceV3{InterfaceID: generatorID}).(*pg.PgCreateInterfaceV3Reply).SwIfIndex
		a.must(&interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: made, Tag: "lab"})
		var cannot *CannotError
		if _, err := Send(t.Context(), a.session, Frames{Tunnel: near.name, Size: 64, Count: 1, Rate: 1}); !errors.As(err, &cannot) {
			t.Errorf("got %v", err)
		}
		if err := Tidy(t.Context(), a.session); !errors.As(err, &cannot) {
			t.Errorf("got %v", err)
		}
		existing := a.interfaces()[generatorName]
		if existing == nil || existing.SwIfIndex != made || vpp.Text(existing.Tag) != "lab" || IsGenerator(existing) {
			t.Errorf("theirs is %+v", existing)
		}
	})
}

// cut is a connection that breaks after that many requests. Either the next request is lost, or only its
// reply.
type cut struct {
	vpp.Reader
	left     int
	received bool
	broken   bool
}

var errCut = errors.New("the connection is cut")

func (c *cut) breaks() bool {
	c.broken = c.broken || c.left == 0
	c.left--
	return c.broken
}

func (c *cut) Call(ctx context.Context, request api.Message) (api.Message, error) {
	if was := c.broken; c.breaks() {
		if c.received && !was {
			_, _ = c.Reader.Call(ctx, request)
		}
		return nil, errCut
	}
	return c.Reader.Call(ctx, request)
}

func (c *cut) Dump(ctx context.Context, requests []api.Message, each func(api.Message)) error {
	if c.breaks() {
		return errCut
	}
	return c.Reader.Dump(ctx, requests, each)
}

// TestSendCleansUpAfterAnInterruptionAtAnyMessage simulates that the agent is killed, or that VPP stops
// replying, after each message.
func TestSendCleansUpAfterAnInterruptionAtAnyMessage(t *testing.T) {
	onEveryPair(t, func(t *testing.T, a, z *router) {
		near, far := a.tunnelTo(z, intent.GENEVE, 4), z.tunnelTo(a, intent.GENEVE, 4)
		before := len(a.interfaces())
		for _, received := range []bool{false, true} {
			through := false
			for after := 0; !through; after++ {
				session := &cut{Reader: a.session, left: after, received: received}
				sent, err := Send(t.Context(), session, Frames{Tunnel: near.name, Size: 100, Count: 5, Rate: 1000})
				if through = err == nil; !through && !errors.Is(err, errCut) || through && sent != 5 {
					t.Fatalf("after %d messages: sent %d, %v", after, sent, err)
				}
				next := a.dial()
				if err := Tidy(t.Context(), next); err != nil {
					t.Fatalf("after %d messages: %v", after, err)
				}
				next.Close()
				a.mustBeTidy(t, fmt.Sprintf("after %d messages (received: %v)", after, received))
				if now := len(a.interfaces()); now != before {
					t.Fatalf("after %d messages: %d interfaces, were %d", after, now, before)
				}
				if after > 20 {
					t.Fatal("there cannot be so many messages")
				}
			}
		}
		far.settle()
		if got := arrived(t, near, far, 1518, 10); got != 10 {
			t.Errorf("and then %d of 10 arrive", got)
		}
	})
}

// cutWhenSending is a connection that breaks as soon as the first frames have left.
type cutWhenSending struct {
	vpp.Reader
	sending bool
}

func (c *cutWhenSending) Call(ctx context.Context, request api.Message) (api.Message, error) {
	if c.sending {
		return nil, errCut
	}
	line, isCLI := request.(*vlib.CliInband)
	c.sending = isCLI && strings.Contains(line.Cmd, "enable-stream")
	return c.Reader.Call(ctx, request)
}

func TestTidyStopsARunningStream(t *testing.T) {
	onEveryPair(t, func(t *testing.T, a, z *router) {
		near, far := a.tunnelTo(z, intent.VXLAN, 6), z.tunnelTo(a, intent.VXLAN, 6)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) // of one second
		defer cancel()
		_, err := Send(ctx, &cutWhenSending{Reader: a.session}, Frames{Tunnel: near.name, Size: 100, Count: 1000, Rate: 1000})
		if err == nil {
			t.Fatal("no error")
		}
		if err := Tidy(t.Context(), a.session); err != nil {
			t.Fatal(err)
		}
		a.mustBeTidy(t, "afterwards")
		far.settle()
		if got := arrived(t, near, far, 1518, 10); got != 10 {
			t.Errorf("and then %d of 10 arrive", got)
		}
	})
}

func TestSendCleansUpAfterARefusal(t *testing.T) {
	onEveryPair(t, func(t *testing.T, a, _ *router) {
		before := len(a.interfaces())
		var refused *vpp.RefusedError
		if _, err := Send(t.Context(), a.session, Frames{Tunnel: "vxlan_tunnel99", Size: 64, Count: 1, Rate: 1}); !errors.As(err, &refused) {
			t.Errorf("got %v", err)
		}
		a.mustBeTidy(t, "afterwards")
		if now := len(a.interfaces()); now != before {
			t.Errorf("%d interfaces, were %d", now, before)
		}
	})
}

func TestSendRefusesATunnelNameThatIsNotOneWord(t *testing.T) {
	sim := newSimulated(t, t.TempDir(), 1)
	for _, name := range []string{"", "a b", "x } node host-cust1 data {", "t\n", "t;"} {
		var cannot *CannotError
		if _, err := Send(t.Context(), sim.session, Frames{Tunnel: name, Size: 64, Count: 1, Rate: 1}); !errors.As(err, &cannot) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestSendNamesTheMissingMessageAndChangesNothing(t *testing.T) {
	for _, message := range []string{"cli_inband", "pg_create_interface_v3", "pg_delete_interface"} {
		t.Run(message, func(t *testing.T) {
			sim, err := vppsim.Start(t.Context(), vppsim.Config{WithoutMessages: []string{message}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(sim.Stop)
			session, err := vpp.Dialer{Socket: sim.APISocket(), Timeout: patience}.Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(session.Close)
			if missing := Missing(session.Has); missing != message {
				t.Errorf("missing %q", missing)
			}
			var cannot *CannotError
			_, err = Send(t.Context(), session, Frames{Tunnel: "vxlan_tunnel0", Size: 64, Count: 1, Rate: 1})
			if !errors.As(err, &cannot) || !strings.Contains(err.Error(), message) || !strings.Contains(err.Error(), "25.10") {
				t.Errorf("got %v", err)
			}
			if err := Tidy(t.Context(), session); err != nil {
				t.Errorf("tidy: %v", err)
			}
		})
	}
}

// slow is a VPP that reports the progress of its streams in several steps.
type slow struct {
	vpp.Reader
	says []string
}

func (s *slow) Call(ctx context.Context, request api.Message) (api.Message, error) {
	line, isCLI := request.(*vlib.CliInband)
	if !isCLI || line.Cmd != "show packet-generator" {
		return s.Reader.Call(ctx, request)
	}
	said := s.says[0]
	if len(s.says) > 1 {
		s.says = s.says[1:]
	}
	return &vlib.CliInbandReply{Reply: said}, nil
}

func TestSendReturnsTheNumberOfSentFrames(t *testing.T) {
	const head = "Name               Enabled        Count     Parameters\n"
	for name, c := range map[string]struct {
		says    []string
		sent    int
		refused bool
	}{
		"all at once":               {[]string{head + "longline-test        No            10       limit 10, \n"}, 10, false},
		"by and by":                 {[]string{head + "longline-test  Yes  3  limit 10\n", head + "longline-test  Yes  9  limit 10\n", head + "longline-test  No  10  limit 10\n"}, 10, false},
		"never all":                 {[]string{head + "longline-test  Yes  4  limit 10\n"}, 4, false},
		"next to others":            {[]string{head + "theirs  Yes  99  limit 0\nlongline-test2  No  5  x\nlongline-test  No  10  limit 10\n"}, 10, false},
		"another client deleted it": {[]string{"no streams currently defined\n"}, 0, true},
		"in another layout":         {[]string{head + "longline-test  No  many  limit 10\n"}, 0, true},
		"of only another's":         {[]string{head + "theirs  Yes  99  limit 0\n"}, 0, true},
		"nothing":                   {[]string{""}, 0, true},
		"a line that is cut off":    {[]string{head + "longline-test  No"}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sim := newSimulated(t, t.TempDir(), 1)
			near := sim.tunnelTo(&router{local: loopbacks(2)}, intent.VXLAN, 4)
			sent, err := Send(t.Context(), &slow{sim.session, c.says}, Frames{Tunnel: near.name, Size: 64, Count: 10, Rate: 1000})
			var refused *vpp.RefusedError
			if sent != c.sent || errors.As(err, &refused) != c.refused || (err == nil) == c.refused {
				t.Errorf("sent %d, %v", sent, err)
			}
			sim.mustBeTidy(t, "afterwards")
		})
	}
}

func FuzzProgressParsesOrRefusesTheOutput(f *testing.F) {
	for _, text := range []string{"", "longline-test Yes 5", "longline-test\n", "longline-test No -1 x", "longline-test No 99999999999999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if sent, running, err := progress(text); sent < 0 || err != nil && (sent != 0 || running) {
			t.Errorf("%d, %v with %v", sent, running, err)
		}
	})
}
