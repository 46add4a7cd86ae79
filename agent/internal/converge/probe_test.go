package converge

import (
	"maps"
	"testing"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
)

// probes returns one probe of each encapsulation.
func probes() []intent.End {
	vxlan, geneve, gre := vxlanEnd(1, ""), vxlanEnd(2, ""), vxlanEnd(3, "")
	geneve.Tunnel.Encapsulation = intent.GENEVE
	gre.Tunnel.Encapsulation, gre.Tunnel.VNI = intent.GRE, 0
	ends := []intent.End{vxlan, geneve, gre}
	for i := range ends {
		ends[i].Access, ends[i].Testing, ends[i].Frame = intent.Access{}, true, 65535
	}
	return ends
}

func TestProbeCarriesTestFramesAndIsRemovedCompletely(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.needs(t, observe.CanTest)
		line := vxlanEnd(9, r.ports[0])
		r.put([]intent.End{line}).mustAllBe(t, "verified")
		before := comparable(r.snapshot())
		ends := probes()
		for range 2 {
			for _, end := range r.put(append([]intent.End{line}, ends...)).Ends {
				if wanted := map[bool]string{true: "verified", false: "testing"}[end.Key == line.Key]; end.Status != wanted {
					t.Errorf("%s is %s: %+v", end.Key, end.Status, end.Reason)
				}
			}
		}
		writes := r.writes()
		r.CheckDrift(t.Context())
		if r.writes() != writes {
			t.Errorf("%d messages for what is as it should be", r.writes()-writes)
		}
		for _, end := range ends {
			request := frames(end, 7)
			counted, err := r.SendTestFrames(t.Context(), frames(end, 0))
			if err != nil {
				t.Fatal(err)
			}
			request.Frame = 8900
			result, err := r.SendTestFrames(t.Context(), request)
			if err != nil || result.Sent != 7 {
				t.Fatalf("%s: got %+v, %v", end.Tunnel.Encapsulation, result, err)
			}
			if sent := result.Counters.Tx - counted.Counters.Tx; end.Tunnel.Encapsulation != intent.GRE && sent != 7 {
				t.Errorf("%s: %d frames went into the tunnel", end.Tunnel.Encapsulation, sent)
			}
		}
		var gone []intent.Tombstone
		for _, end := range ends {
			gone = append(gone, tombstone(end))
		}
		for _, end := range r.put([]intent.End{line}, gone...).Ends {
			if wanted := map[bool]string{true: "verified", false: "removed"}[end.Key == line.Key]; end.Status != wanted {
				t.Errorf("%s is %s: %+v", end.Key, end.Status, end.Reason)
			}
		}
		if after := comparable(r.snapshot()); !maps.Equal(after, before) {
			t.Errorf("got  %v\nwant %v", after, before)
		}
	})
}
