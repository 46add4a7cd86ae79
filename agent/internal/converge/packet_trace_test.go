package converge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/vlib"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/vpp"
)

// tracingSession is a session with a tracer that captures one packet, which entered L2 on the interface at
// index.
type tracingSession struct {
	*vpp.Session
	index    uint32
	taken    func() // called after the packet was captured
	commands []string
}

func (s *tracingSession) Call(ctx context.Context, request api.Message) (api.Message, error) {
	command, isLine := request.(*vlib.CliInband)
	if !isLine || !strings.Contains(command.Cmd, "trace") {
		return s.Session.Call(ctx, request)
	}
	s.commands = append(s.commands, command.Cmd)
	reply := &vlib.CliInbandReply{}
	if strings.HasPrefix(command.Cmd, "show trace") && command.Cmd != "show trace max 1" {
		reply.Reply = fmt.Sprintf("Packet 1\n\n00:00:01:000000: l2-input\n  l2-input: sw_if_index %d dst 02:00:00:00:00:0b src 02:00:00:00:00:0a\n", s.index)
		s.taken()
	}
	return reply, nil
}

// TestTraceShowsOnlyPacketsOfTheLine also covers an index that VPP gives to another line during the trace.
func TestTraceShowsOnlyPacketsOfTheLine(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		one, two := vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[0])
		r.put([]intent.End{one}).mustAllBe(t, "verified")
		access := r.snapshot().Subs(uint32(r.index(r.ports[0])))[0]
		var inTheWay error
		session := &tracingSession{Session: r.session, index: access.Index}
		session.taken = func() { _, inTheWay = r.tracer.Trace(t.Context(), one.VLL, 1, time.Second) }
		r.Attach(session)
		observations := r.Status().Statistics.FullObservations
		result, err := r.tracer.Trace(t.Context(), one.VLL, 1, time.Minute)
		if err != nil || len(result.Packets) != 1 || result.Packets[0].From != access.Name {
			t.Fatalf("got %+v, %v", result, err)
		}
		if now := r.Status().Statistics.FullObservations; now > observations+1 { // nothing is known of VPP through a new connection
			t.Errorf("all of VPP was read %d times", now-observations)
		}
		if !errors.Is(inTheWay, ErrTracing) {
			t.Errorf("during another trace: %v", inTheWay)
		}

		session.taken = func() {
			r.put(nil, tombstone(one))
			r.put([]intent.End{two})
		}
		session.commands = nil
		var nothing *NotTestingError
		result, err = r.tracer.Trace(t.Context(), one.VLL, 1, time.Minute)
		if result != nil || !errors.As(err, &nothing) || !strings.Contains(err.Error(), "changed during the trace") {
			t.Errorf("while the index became another line's: %+v, %v", result, err)
		}
		if now := r.snapshot().ByIndex(access.Index); now == nil || !strings.Contains(now.Tag, two.VLL) {
			t.Errorf("this test shows nothing: of the other line's interfaces none has the index: %+v", now)
		}
		if len(session.commands) == 0 || session.commands[len(session.commands)-1] != "clear trace" {
			t.Errorf("the tracer is not cleared: %q", session.commands)
		}

		session.commands = nil
		if _, err = r.tracer.Trace(t.Context(), one.VLL, 1, time.Minute); !errors.As(err, &nothing) || len(session.commands) != 0 {
			t.Errorf("a line that is not here: %v, %q", err, session.commands)
		}
	})
}
