package converge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"go.fd.io/govpp/api"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/vpp"
)

var errCrash = errors.New("the agent dies here")

// mortal is a session of an agent that dies after so many changes of VPP.
type mortal struct {
	*vpp.Session
	left int
}

func (m *mortal) Calls(ctx context.Context, requests []api.Message) ([]api.Message, error) {
	if len(requests) > m.left {
		if _, err := m.Session.Calls(ctx, requests[:m.left]); err != nil {
			return nil, err
		}
		m.left = 0
		return nil, errCrash
	}
	m.left -= len(requests)
	return m.Session.Calls(ctx, requests)
}

// TestAnAgentMayDieBetweenAnyTwoMessages kills it at each of them, on the way to a first intent, on the way
// from that to one where everything has another key, and on the way to nothing. The next agent, with the
// same folder, gets there, and at the end VPP is as it was before the first.
func TestAnAgentMayDieBetweenAnyTwoMessages(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		first := []intent.End{vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[1])}
		first[1].Access = intent.Access{Interface: r.ports[1], Tagging: intent.Untagged, Exact: true}
		second := []intent.End{vxlanEnd(1, r.ports[2]), vxlanEnd(2, r.ports[0])}
		for i := range second {
			second[i].Tunnel.VNI += 5000
			second[i].Revision = 2
		}
		gone := []intent.Tombstone{tombstone(second[0]), tombstone(second[1])}
		before := comparable(r.snapshot())
		for after, died := 0, true; died; after++ {
			died = false
			for name, step := range []struct {
				present []intent.End
				removed []intent.Tombstone
				status  string
			}{{first, nil, "verified"}, {second, nil, "verified"}, {nil, gone, "removed"}} {
				r.Attach(&mortal{r.session, after})
				outcome := r.put(step.present, step.removed...)
				died = died || !outcome.Applied
				r.open()
				again := r.Converge(t.Context())
				again.mustAllBe(t, step.status)
				if t.Failed() {
					t.Fatalf("died after %d messages of step %d", after, name)
				}
			}
			if now := comparable(r.snapshot()); !maps.Equal(now, before) {
				t.Fatalf("died after %d messages, and in the end\n got %v\nwant %v", after, now, before)
			}
			if after > 100 {
				t.Fatal(fmt.Sprint("there cannot be so many messages: ", after))
			}
		}
	})
}
