package converge

import (
	"context"
	"reflect"
	"testing"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
)

// TestManyLinesAreReadInPortions with the same result as one dump. VPP's main thread does nothing else
// during a dump, and BFD, LACP and ARP run on it.
func TestManyLinesAreReadInPortions(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		const lines = 1050 // two interfaces each: more than are requested at once
		var ends []intent.End
		for n := range lines {
			ends = append(ends, vxlanEnd(n, r.ports[n%2]))
		}
		r.put(ends).mustAllBe(t, "verified")
		atOnce := r.snapshot()
		segment := statseg.NewReopeningSegment(r.stats)
		t.Cleanup(segment.Close)
		indexed, err := vpp.Dialer{Socket: r.api, Timeout: realvpp.ReplyTimeout, Interfaces: segment.Interfaces, BootMS: func(ctx context.Context) (int64, error) {
			return statseg.BootTime(ctx, r.stats)
		}}.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(indexed.Close)
		session := &countingMessages{Session: indexed, sent: make(map[string]int)}
		inPortions, err := observe.Full(t.Context(), session, boot(session))
		if err != nil {
			t.Fatal(err)
		}
		if n := session.sent["sw_interface_dump of all"]; n > 0 || session.sent["vxlan_tunnel_v2_dump"] < lines {
			t.Errorf("all interfaces or all tunnels were requested at once: %v", session.sent)
		}
		if !reflect.DeepEqual(inPortions.Interfaces, atOnce.Interfaces) || !reflect.DeepEqual(inPortions.Tunnels, atOnce.Tunnels) ||
			!reflect.DeepEqual(inPortions.Connects, atOnce.Connects) {
			t.Error("what was read in portions differs from what was read at once")
		}
	})
}
