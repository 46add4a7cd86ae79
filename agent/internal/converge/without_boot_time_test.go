package converge

import (
	"maps"
	"testing"

	interfaces "go.fd.io/govpp/binapi/interface"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/vpp"
)

// connectBlind connects without a stats segment, so that VPP's boot time is unknown.
func (r *router) connectBlind() {
	r.t.Helper()
	session, err := vpp.Dialer{Socket: r.api, Timeout: realvpp.ReplyTimeout}.Dial(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(session.Close)
	r.session = session
	r.Attach(session)
}

// wholePort returns an end that uses a whole port.
func wholePort(n int, port string) intent.End {
	end := vxlanEnd(n, port)
	end.Access = intent.Access{Interface: port, Tagging: intent.Untagged, Exact: true}
	return end
}

// TestPortWithAForeignTagIsRestoredWithoutAStatsSegment: only the journal knows such a port, and the next
// line gets the index of the tunnel that was cross-connected with the port.
func TestPortWithAForeignTagIsRestoredWithoutAStatsSegment(t *testing.T) {
	for name, between := range map[string]func(*router){
		"immediately": func(*router) {}, "after a restart of the agent": (*router).open, "after a new connection": (*router).connectBlind,
	} {
		t.Run(name, func(t *testing.T) {
			onEveryVPP(t, func(t *testing.T, r *router) {
				r.connectBlind()
				end, next := wholePort(1, r.ports[1]), vxlanEnd(2, r.ports[0])
				r.must(&interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: r.index(r.ports[1]), Tag: "rack 3, blue cable"})
				before := comparable(r.snapshot())
				r.put([]intent.End{end}).mustAllBe(t, "verified")
				between(r)
				r.put(nil, tombstone(end)).mustAllBe(t, "removed")
				if after := comparable(r.snapshot()); !maps.Equal(after, before) {
					t.Errorf("got  %v\nwant %v", after, before)
				}
				r.put([]intent.End{next}).mustAllBe(t, "verified")
			})
		})
	}
}
