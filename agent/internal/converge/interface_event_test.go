package converge

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip_types"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
)

// countingMessages is a session that counts its messages by name.
type countingMessages struct {
	*vpp.Session
	mu   sync.Mutex // the engine dumps several portions at once
	sent map[string]int
}

func (s *countingMessages) count(requests []api.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, request := range requests {
		name := request.GetMessageName()
		if dump, is := request.(*interfaces.SwInterfaceDump); is && uint32(dump.SwIfIndex) == ^uint32(0) && !dump.NameFilterValid {
			name += " of all"
		}
		s.sent[name]++
	}
}

func (s *countingMessages) Calls(ctx context.Context, requests []api.Message) ([]api.Message, error) {
	s.count(requests)
	return s.Session.Calls(ctx, requests)
}

func (s *countingMessages) Dump(ctx context.Context, requests []api.Message, each func(api.Message)) error {
	s.count(requests)
	return s.Session.Dump(ctx, requests, each)
}

func (s *countingMessages) DumpEach(ctx context.Context, requests []api.Message, each func(int, api.Message)) error {
	s.count(requests)
	return s.Session.DumpEach(ctx, requests, each)
}

func (s *countingMessages) all() (all int) {
	for _, n := range s.sent {
		all += n
	}
	return all
}

// countMessages counts the engine's messages from now on.
func (r *router) countMessages() *countingMessages {
	r.t.Helper()
	r.options.Epoch = statseg.NewReopeningSegment(r.stats).Epoch
	session := &countingMessages{Session: r.session, sent: make(map[string]int)}
	r.mu.Lock()
	r.Engine.session = session // the same connection, so the engine keeps its observations
	r.mu.Unlock()
	return session
}

// afterEvents does the same as Serve after VPP has reported changed interfaces, and returns the number of
// messages.
func (r *router) afterEvents(session *countingMessages, changed ...uint32) (sent int) {
	r.t.Helper()
	clear(session.sent)
	for _, index := range changed {
		r.noteEvent(index, 0, 64)
	}
	r.repairAfterEvents(r.t.Context())
	return session.all()
}

func TestInterfaceEventCostsTheSameWithManyForeignPorts(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		const foreign = 60
		r.put([]intent.End{vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[1])}).mustAllBe(t, "verified")
		session := r.countMessages()
		r.repair(t.Context())
		few := r.afterEvents(session, uint32(r.portByHand(300)))
		for n := range uint32(foreign) {
			r.portByHand(400 + n)
		}
		r.repair(t.Context())
		port := r.portByHand(301)
		if many := r.afterEvents(session, uint32(port)); many != few {
			t.Errorf("with %d foreign ports more, an interface that comes costs %d messages, want %d as before: %v", foreign, many, few, session.sent)
		}
		if r.LastSnapshot().ByName("loop301") == nil {
			t.Error("the interface that came is not observed")
		}
		r.must(&interfaces.DeleteLoopback{SwIfIndex: port})
		if many := r.afterEvents(session, uint32(port)); many > few {
			t.Errorf("an interface that goes costs %d messages, want at most %d: %v", many, few, session.sent)
		}
		if r.LastSnapshot().ByName("loop301") != nil {
			t.Error("the interface that went is still observed")
		}
	})
}

func TestFullObservationReadsPolicersOnlyOnPortsOfLines(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		session := r.countMessages()
		whole := vxlanEnd(1, r.ports[0])
		whole.Access = intent.Access{Interface: r.ports[0], Tagging: intent.Untagged, Exact: true}
		r.put([]intent.End{whole}).mustAllBe(t, "verified")
		clear(session.sent)
		if _, err := r.fullObservation(t.Context(), session); err != nil {
			t.Fatal(err)
		}
		before := session.sent["feature_is_enabled"] + session.sent["cli_inband"]
		for n := range uint32(20) {
			r.portByHand(400 + n)
		}
		clear(session.sent)
		if _, err := r.fullObservation(t.Context(), session); err != nil {
			t.Fatal(err)
		}
		if more := session.sent["feature_is_enabled"] + session.sent["cli_inband"]; more != before || before == 0 {
			t.Errorf("with 20 foreign ports more it reads policers %d times, want %d as before", more, before)
		}
	})
}

func TestEventMakesTheAgentReadAnInterfaceWithTheSameIndexAndName(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		end := vxlanEnd(1, r.ports[0])
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		session := r.countMessages()
		r.repair(t.Context())
		name := r.LastSnapshot().ByAddress(0, locals[4])
		index := r.index(name.Name)
		r.must(&interfaces.SwInterfaceAddDelAddress{SwIfIndex: index, IsAdd: true,
			Prefix: ip_types.AddressWithPrefix{Address: vpp.IPAddress(remotes[4].Next()), Len: 32}})
		r.afterEvents(session, uint32(index))
		if r.LastSnapshot().ByAddress(0, remotes[4].Next()) == nil {
			t.Error("the address that the interface got is not observed")
		}
		if n := session.sent["sw_interface_dump of all"]; n != 0 {
			t.Errorf("all interfaces were read %d times", n)
		}
	})
}

func TestLostEventsCauseAFullObservation(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.put([]intent.End{vxlanEnd(1, r.ports[0])}).mustAllBe(t, "verified")
		r.countMessages()
		r.repair(t.Context())
		before := r.Status().Statistics.FullObservations
		r.noteEvent(7, 63, 64)
		r.repairAfterEvents(t.Context())
		if after := r.Status().Statistics.FullObservations; after == before {
			t.Error("VPP was not read as a whole although events may have been lost")
		}
	})
}

func TestServeBuildsAnEndAfterAnEventWithoutAFullObservation(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		end := vxlanEnd(1, "loop7")
		r.options.Epoch = statseg.NewReopeningSegment(r.stats).Epoch
		r.put([]intent.End{end})
		r.session.Close()
		r.connect()
		ended := make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		go func() { defer close(ended); r.Serve(ctx, r.session) }()
		defer func() { stop(); <-ended }()
		time.Sleep(time.Second)
		r.must(&interfaces.CreateLoopbackInstance{IsSpecified: true, UserInstance: 7})
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			if p := r.knownState(); p != nil || time.Now().After(deadline) {
				if p == nil {
					p, _ = r.ObservedState(t.Context())
				}
				if p != nil && p.Plan != nil && len(p.Plan.Blocked) == 0 && len(p.Plan.Ops) == 0 {
					return
				}
				if time.Now().After(deadline) {
					t.Fatalf("not built: %+v", p)
				}
			}
			_, _ = r.ObservedState(t.Context())
		}
	})
}
