package converge

import (
	"testing"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vppsim"
)

// moreThanFit is more VLLs than fit into this small stats segment: without the limit, VPP 25.10 aborts.
const (
	moreThanFit    = 800
	smallSegment   = 4 << 20
	smallInStartup = "4M"
)

func TestConvergeRespectsTheInterfaceLimitOfVPP(t *testing.T) {
	t.Run("vppsim", func(t *testing.T) {
		sim, err := vppsim.Start(t.Context(), vppsim.Config{StatsSegment: smallSegment})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(sim.Stop)
		fillTheRouter(t, newRouter(t, sim.APISocket(), sim.StatsSocket()))
	})
	t.Run("real VPP", func(t *testing.T) {
		real := realvpp.StartOrSkip(t, realvpp.Options{Plugins: []string{"vxlan"}, StatsSegment: smallInStartup})
		fillTheRouter(t, newRouter(t, real.APISocket(), real.StatsSocket()))
	})
}

func fillTheRouter(t *testing.T, r *router) {
	segment := statseg.NewReopeningSegment(r.stats)
	defer segment.Close()
	r.options.FreeInterfaces = segment.FreeInterfaces
	var ends []intent.End
	for n := range moreThanFit {
		ends = append(ends, vxlanEnd(n+1, r.ports[0]))
	}
	outcome := r.put(ends)
	if !outcome.Applied {
		t.Fatalf("VPP is gone: %v", outcome.Ends[0].Reason)
	}
	made := 0
	for n, end := range outcome.Ends {
		switch {
		case end.Status == "verified" && n == made:
			made++
		case end.Status == "pending" && end.Reason.Code == "stats_segment_full":
		default:
			t.Fatalf("%s is %s: %+v", end.Key, end.Status, end.Reason)
		}
	}
	if made < 100 || made == moreThanFit {
		t.Errorf("%d of %d VLLs were made", made, moreThanFit)
	}
	const fewer = 50
	var gone []intent.Tombstone
	for _, end := range ends[:fewer] {
		gone = append(gone, tombstone(end))
	}
	r.put(ends[fewer:made], gone...).mustBe(t, ends[fewer:made], "verified")
	// VPP reuses the slots of deleted interfaces.
	r.put(ends[fewer:made+fewer], gone...).mustBe(t, ends[fewer:made+fewer], "verified")
}

func (o *Outcome) mustBe(t *testing.T, ends []intent.End, status string) {
	t.Helper()
	found := make(map[intent.Key]End, len(o.Ends))
	for _, end := range o.Ends {
		found[end.Key] = end
	}
	for _, end := range ends {
		if got := found[end.Key]; got.Status != status {
			t.Fatalf("%s is %s, want %s: %+v", end.Key, got.Status, status, got.Reason)
		}
	}
}
