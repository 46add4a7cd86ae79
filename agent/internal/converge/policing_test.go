package converge

import (
	"fmt"
	"maps"
	"testing"

	"go.fd.io/govpp/binapi/policer"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/vppsim"
)

var profile = intent.Bandwidth{CIR: 50_000_000, CBS: 64_000, EIR: 10_000_000, EBS: 32_000}

// onSims runs a test on stand-ins of several releases. The first two police sub-interfaces by classifier,
// and the first shows the policing of ports only on its CLI. Another lacks the messages of classifiers, and
// the last one polices sub-interfaces like ports.
func onSims(t *testing.T, test func(*testing.T, *router, *vppsim.Sim)) {
	for _, config := range []vppsim.Config{
		{Version: "25.02-vppsim", WithoutMessages: []string{"feature_is_enabled", "feature_is_enabled_reply"}},
		{Version: "26.02-vppsim"},
		{Version: "26.02-vppsim.ports", WithoutMessages: []string{"classify_session_dump"}},
		{Version: "26.06-vppsim"},
	} {
		t.Run(config.Version, func(t *testing.T) {
			sim, err := vppsim.Start(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(sim.Stop)
			test(t, newRouter(t, sim.APISocket(), sim.StatsSocket()), sim)
		})
	}
}

// policedEnds returns a whole port and a VLAN, both with a profile.
func policedEnds(r *router) (port, vlan intent.End) {
	port, vlan = vxlanEnd(1, r.ports[1]), vxlanEnd(2, r.ports[0])
	port.Access = accessOf(intent.Untagged, r.ports[1])
	port.Bandwidth, vlan.Bandwidth = profile, profile
	return port, vlan
}

func TestProfileIsEnforcedAndReportedAccordingToTheRelease(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		port, vlan := policedEnds(r)
		policing := r.snapshot().Policing
		outcome := r.put([]intent.End{port, vlan})
		outcome.mustAllBe(t, "verified")
		// Frames of a loopback bypass the policer node, so it needs the classifier.
		if got, want := outcome.of(t, port.Key).Policed, policing.Reach() == observe.SubInterfacePolicing; got != want {
			t.Errorf("the port is policed: %v, and this VPP can police: %s", got, policing)
		}
		if got, want := outcome.of(t, vlan.Key).Policed, policing.Reach() == observe.SubInterfacePolicing; got != want {
			t.Errorf("the VLAN is policed: %v, and this VPP can police: %s", got, policing)
		}
		r.put(nil, tombstone(port), tombstone(vlan)).mustAllBe(t, "removed")
		if s := r.snapshot(); len(s.Policers) != 0 || len(s.Policed) != 0 || len(s.Classified) != 0 || len(s.Tables) != 0 || len(s.Bound) != 0 {
			t.Errorf("left behind: %v on %v, classify tables %v bound to %v", s.Policers, s.Policed, s.Tables, s.Bound)
		}
	})
}

// TestHostInterfaceBefore2406IsPolicedByTheClassifier: frames bypass the policer node there.
func TestHostInterfaceBefore2406IsPolicedByTheClassifier(t *testing.T) {
	sim, err := vppsim.Start(t.Context(), vppsim.Config{
		Version: "24.02-vppsim", WithoutMessages: []string{"feature_is_enabled", "feature_is_enabled_reply"},
		Interfaces: []vppsim.Interface{{Name: "host-cust1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Stop)
	r := newRouter(t, sim.APISocket(), sim.StatsSocket())
	port, vlan := policedEnds(r)
	port.Access.Interface = "host-cust1"
	outcome := r.put([]intent.End{port, vlan})
	outcome.mustAllBe(t, "verified")
	for _, end := range []intent.End{port, vlan} {
		if name, times := sim.Policed(r.accessName(end)); !outcome.of(t, end.Key).Policed || times != 1 || name != ownership.PolicerName(end.Key) {
			t.Errorf("%s passes %q %d times, and the outcome says %v", end.Key, name, times, outcome.of(t, end.Key).Policed)
		}
	}
	if s := r.snapshot(); len(s.Bound) != 2 || s.Policed[uint32(r.index("host-cust1"))] {
		t.Errorf("bound %v, applied %v", s.Bound, s.Policed)
	}
}

func TestPolicerIsNotAppliedTwice(t *testing.T) {
	onSims(t, func(t *testing.T, r *router, sim *vppsim.Sim) {
		port, vlan := policedEnds(r)
		steps := []struct {
			why    string
			change func()
		}{
			{"at first", func() {}},
			{"the same again", func() {}},
			{"a new start of the agent", func() { r.open() }},
			{"another tunnel", func() { port.Tunnel.VNI += 10; vlan.Tunnel.VNI += 10 }},
			{"another VLAN", func() { vlan.Access.Outer++ }},
			{"another rate", func() { port.Bandwidth.CIR *= 2; vlan.Bandwidth.CIR *= 2 }},
		}
		for _, step := range steps {
			step.change()
			port.Revision, vlan.Revision = port.Revision+1, vlan.Revision+1
			outcome := r.put([]intent.End{port, vlan})
			outcome.mustAllBe(t, "verified")
			for _, end := range []intent.End{port, vlan} {
				name, times := sim.Policed(r.accessName(end))
				want := outcome.of(t, end.Key).Policed
				if want != (times == 1) || want != (name == ownership.PolicerName(end.Key)) || times > 1 {
					t.Errorf("%s: %s passes %q %d times, and the outcome says %v", step.why, end.Key, name, times, want)
				}
			}
		}
	})
}

// accessName returns the name of the end's access interface.
func (r *router) accessName(end intent.End) string {
	r.t.Helper()
	if end.Access.Tagging == intent.Untagged {
		return end.Access.Interface
	}
	return fmt.Sprintf("%s.%d", end.Access.Interface, end.Access.Outer)
}

func TestPolicerIsAppliedAgainAfterTheAccessLeftL2(t *testing.T) {
	onSims(t, func(t *testing.T, r *router, sim *vppsim.Sim) {
		_, vlan := policedEnds(r)
		r.put([]intent.End{vlan}).mustAllBe(t, "verified")
		name := r.accessName(vlan)
		_, before := sim.Policed(name)
		r.disconnect(name)
		if !r.repair(t.Context()) {
			t.Fatal("nothing was repaired")
		}
		if _, after := sim.Policed(name); after != before {
			t.Errorf("policed %d times, before %d", after, before)
		}
	})
}

func TestForeignPolicersAreNotChanged(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		if r.snapshot().Policing == observe.NoPolicing {
			t.Skip("this VPP has no policers")
		}
		port, _ := policedEnds(r)
		theirs := &policer.PolicerAdd{Name: "longline-like", Infos: observe.PolicerConfig(profile)}
		r.must(theirs)
		r.must(&policer.PolicerInput{Name: theirs.Name, SwIfIndex: r.index(r.ports[1]), Apply: true})
		before := comparable(r.snapshot())
		outcome := r.put([]intent.End{port})
		if e := outcome.of(t, port.Key); e.Status != "conflict" || e.Reason.Code != "port_in_use" || e.Reason.Object == "" {
			t.Errorf("got %+v %+v", e, e.Reason)
		}
		if after := comparable(r.snapshot()); !maps.Equal(after, before) {
			t.Errorf("got  %v\nwant %v", after, before)
		}
	})
}
