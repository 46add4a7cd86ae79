package converge

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/vpp"
)

func TestSecondAgentOnAVPPChangesNothingAndNamesTheFirst(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		dialer := func(router string) vpp.Dialer {
			return vpp.Dialer{Socket: r.api, Timeout: realvpp.ReplyTimeout, Name: vpp.AgentName(router)}
		}
		one, two := dialer("rhino"), dialer("rhino") // for example a copy of the same machine
		first, err := one.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(first.Close)
		_, err = two.Dial(t.Context())
		var other *vpp.OtherAgentError
		if !errors.As(err, &other) || other.Folder != filepath.Dir(r.api) {
			t.Fatalf("the second agent got %v", err)
		}
		r.Attach(nil)
		r.Refused(err)
		end := vxlanEnd(1, r.ports[0])
		outcome := r.put([]intent.End{end})
		if e := outcome.of(t, end.Key); outcome.Applied || e.Status != "pending" || e.Reason.Code != "other_agent" || e.Reason.Object != other.Folder {
			t.Errorf("answered %+v %+v", e, e.Reason)
		}
		if err := r.Ready(); err == nil || !strings.Contains(err.Error(), "another agent") {
			t.Errorf("ready: %v", err)
		}
		first.Close() // the session has ended when Close returns
		session, err := two.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		session.Close()
	})
}
