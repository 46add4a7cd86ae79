package converge

import (
	"errors"
	"strings"
	"testing"
	"time"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/vpp"
)

func TestTheSecondAgentOnOneVPPChangesNothingAndNamesTheFirst(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		dialer := func(router string) vpp.Dialer {
			return vpp.Dialer{Socket: r.api, Timeout: 5 * time.Second, Name: vpp.AgentName(router)}
		}
		one, two := dialer("rhino"), dialer("rhino") // a copy of the same machine, say
		first, err := one.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(first.Close)
		_, err = two.Dial(t.Context())
		var other *vpp.OtherAgentError
		if !errors.As(err, &other) || !strings.HasPrefix(one.Name, other.Name) {
			t.Fatalf("the second agent got %v", err)
		}
		r.Attach(nil)
		r.Refused(err)
		end := vxlanEnd(1, r.ports[0])
		outcome := r.put([]intent.End{end})
		if e := outcome.of(t, end.Key); outcome.Applied || e.Status != "pending" || e.Reason.Code != "other_agent" || e.Reason.Object != other.Name {
			t.Errorf("answered %+v %+v", e, e.Reason)
		}
		if err := r.Ready(); err == nil || !strings.Contains(err.Error(), "another agent") {
			t.Errorf("ready: %v", err)
		}
		again, err := one.Dial(t.Context()) // VPP may not have seen yet that its last connection ended
		if err != nil {
			t.Fatalf("an agent is in its own way: %v", err)
		}
		again.Close()
		first.Close()
		for err = errors.New("not tried"); err != nil; {
			var session *vpp.Session
			if session, err = two.Dial(t.Context()); err == nil {
				session.Close()
			} else if !errors.As(err, &other) {
				t.Fatal(err)
			}
		}
	})
}
