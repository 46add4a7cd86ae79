package converge

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/pg"

	"longline.dev/agent/internal/calibration"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
)

func maintenance(on, known bool) func() (bool, bool) { return func() (bool, bool) { return on, known } }

func TestCalibrateChangesNothingOnARouterInService(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		serving, tested, down := vxlanEnd(1, r.ports[0]), testedEnd(2, r.ports[0]), vxlanEnd(3, r.ports[0])
		down.AdminUp = false
		r.put([]intent.End{serving, tested, down})
		before := comparable(r.snapshot())
		for name, c := range map[string]struct {
			maintenance func() (bool, bool)
			withLines   bool
			says        string
		}{
			"without a portal":          {maintenance(false, false), true, "not known"},
			"not reported recently":     {maintenance(true, false), true, "not known"},
			"not under maintenance":     {maintenance(false, true), true, "does not have this router under maintenance"},
			"a line carries frames":     {maintenance(true, true), false, "lines carry frames here, at 1 of their ends"},
			"without a portal and line": {maintenance(false, false), false, "not known"},
		} {
			var inService *InServiceError
			if found, err := NewCalibrator(r.Engine, c.maintenance).Calibrate(t.Context(), c.withLines); !errors.As(err, &inService) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %+v, %v", name, found, err)
			}
		}
		if after := comparable(r.snapshot()); !maps.Equal(after, before) {
			t.Errorf("got  %v\nwant %v", after, before)
		}
	})
}

func TestCalibrateMeasuresARealVPPUnderMaintenance(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.needs(t, observe.CanTest)
		serving := vxlanEnd(1, r.ports[0])
		r.put([]intent.End{serving}).mustAllBe(t, "verified")
		before := comparable(r.snapshot())
		found, err := NewCalibrator(r.Engine, maintenance(true, true)).Calibrate(t.Context(), true)
		if r.session.Info().Simulated() {
			var cannot *calibration.CannotError
			if !errors.As(err, &cannot) || !strings.Contains(err.Error(), "stand-in") {
				t.Errorf("on a stand-in: %+v, %v", found, err)
			}
		} else if err != nil || len(found.Figures) != len(calibration.Transports) || found.AtMS == 0 || found.VPP.Version == "" {
			t.Errorf("got %+v, %v", found, err)
		}
		if after := comparable(r.snapshot()); !maps.Equal(after, before) {
			t.Errorf("got  %v\nwant %v", after, before)
		}
		r.put([]intent.End{serving}).mustAllBe(t, "verified")
	})
}

func TestNextConnectionRemovesTheRestOfACalibration(t *testing.T) {
	r, _ := newRealRouter(t)
	r.needs(t, observe.CanTest)
	r.put([]intent.End{vxlanEnd(1, r.ports[0])}).mustAllBe(t, "verified")
	before := comparable(r.snapshot())
	// The agent may be interrupted before it sets the first tag.
	r.must(&pg.PgCreateInterfaceV3{InterfaceID: 0x4c4c0001})
	go r.Serve(t.Context(), r.session)
	left := func() (names []string) {
		all := []api.Message{&interfaces.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0)}}
		if err := r.session.Dump(t.Context(), all, func(msg api.Message) {
			if m := msg.(*interfaces.SwInterfaceDetails); strings.HasPrefix(m.InterfaceName, "pg") {
				names = append(names, m.InterfaceName)
			}
		}); err != nil {
			t.Fatal(err)
		}
		return names
	}
	for deadline := time.Now().Add(20 * time.Second); len(left()) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("left: %v", left())
		}
	}
	if after := comparable(r.snapshot()); !maps.Equal(after, before) {
		t.Errorf("got  %v\nwant %v", after, before)
	}
}
