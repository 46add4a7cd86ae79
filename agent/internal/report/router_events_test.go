package report

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/packettrace"
	"longline.dev/agent/internal/pathwatch"
	"longline.dev/agent/internal/plan"
)

// calm is a router without events.
func calm() routerView {
	return routerView{
		vpp: &runOf{"25.10", 7, 1000}, applied: &converge.Applied{Generation: 42}, known: true,
		links: map[string]bool{"bb0": true, "cust0": true}, conflicts: map[intent.Key]string{}, quarantined: map[quarantine]bool{},
	}
}

func inShort(events []eventBody) []string {
	var short []string
	for _, e := range events {
		text := e.Kind
		for _, s := range []*string{e.Interface, e.VLL, e.End, e.Detail} {
			if s != nil {
				text += " " + *s
			}
		}
		if e.Generation != nil {
			text += fmt.Sprint(" ", *e.Generation)
		}
		short = append(short, text)
	}
	return short
}

func TestEventsBetweenTwoViewsAreReported(t *testing.T) {
	vll := intent.Key{VLL: "6f0b", End: "a"}
	for name, c := range map[string]struct {
		before, after func(*routerView)
		want          []string
	}{
		"nothing":             {nil, nil, nil},
		"the agent starts":    {func(v *routerView) { *v = routerView{} }, nil, []string{"vpp.connected 25.10", "intent.applied 42"}},
		"a cable is pulled":   {nil, func(v *routerView) { v.links["cust0"] = false }, []string{"interface.down cust0"}},
		"and plugged in":      {func(v *routerView) { v.links["cust0"] = false }, nil, []string{"interface.up cust0"}},
		"a new interface":     {nil, func(v *routerView) { v.links["cust1"] = true }, nil},
		"VPP goes":            {nil, func(v *routerView) { *v = routerView{} }, []string{"vpp.lost 25.10"}},
		"VPP comes":           {func(v *routerView) { v.vpp, v.applied = nil, nil }, nil, []string{"vpp.connected 25.10", "intent.applied 42"}},
		"a quick restart":     {nil, func(v *routerView) { v.vpp = &runOf{"26.02", 8, 2000} }, []string{"vpp.lost 25.10", "vpp.connected 26.02", "intent.applied 42"}},
		"another generation":  {nil, func(v *routerView) { v.applied = &converge.Applied{Generation: 43} }, []string{"intent.applied 43"}},
		"applied once more":   {nil, func(v *routerView) { v.applied = &converge.Applied{Generation: 42, AtMS: 9} }, nil},
		"a conflict":          {nil, func(v *routerView) { v.conflicts[vll] = "in the way" }, []string{"end.conflict 6f0b a in the way"}},
		"a conflict that was": {func(v *routerView) { v.conflicts[vll] = "in the way" }, nil, []string{"end.conflict_cleared 6f0b a"}},
		"a conflict still":    {func(v *routerView) { v.conflicts[vll] = "x" }, func(v *routerView) { v.conflicts[vll] = "y" }, nil},
		"a quarantine":        {nil, func(v *routerView) { v.quarantined[quarantine{vll, "vxlan_tunnel7"}] = true }, []string{"end.quarantined vxlan_tunnel7 6f0b a"}},
		"a hand changed":      {nil, func(v *routerView) { v.drift = map[intent.Key]string{vll: "mtu"} }, []string{"end.drift 6f0b a mtu"}},
		"and that is only reported": {func(v *routerView) { v.drift = map[intent.Key]string{vll: "mtu"} },
			func(v *routerView) { v.drift = map[intent.Key]string{vll: "mtu"} }, nil},
		"and that was repaired": {func(v *routerView) { v.drift = map[intent.Key]string{vll: "mtu"} }, nil, nil},
		"repairs that others undo": {nil, func(v *routerView) { v.contested = map[intent.Key]string{vll: "mtu"} },
			[]string{"end.contested 6f0b a mtu"}},
		"and still does": {func(v *routerView) { v.contested = map[intent.Key]string{vll: "mtu"} },
			func(v *routerView) { v.contested = map[intent.Key]string{vll: "admin_up"} }, nil},
		"and no longer does": {func(v *routerView) { v.contested = map[intent.Key]string{vll: "mtu"} }, nil,
			[]string{"end.contested_cleared 6f0b a"}},
		"a rebuild": {nil, func(v *routerView) { v.vlans.rebuilt = map[intent.Key]string{vll: "dropped"} },
			[]string{"end.vlan_rebuilt 6f0b a dropped"}},
		"a rebuild that restored frames": {nil, func(v *routerView) { v.vlans.restored = map[intent.Key]string{vll: "since noon"} },
			[]string{"end.vlan_restored 6f0b a since noon"}},
		"a rebuild that did not": {nil, func(v *routerView) { v.vlans.notRestored = map[intent.Key]string{vll: "no frame"} },
			[]string{"end.vlan_not_restored 6f0b a no frame"}},
		"nothing more of a rebuild": {func(v *routerView) { v.vlans.restored = map[intent.Key]string{vll: "since noon"} }, nil, nil},
		"many, in order": {nil, func(v *routerView) {
			v.links["bb0"], v.links["cust0"] = false, false
			v.applied = &converge.Applied{Generation: 43}
			v.conflicts[vll] = "in the way"
		}, []string{"interface.down bb0", "interface.down cust0", "end.conflict 6f0b a in the way", "intent.applied 43"}},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := calm(), calm()
			if c.before != nil {
				c.before(&before)
			}
			if c.after != nil {
				c.after(&after)
			}
			if got := inShort(eventsBetween(before, after)); !slices.Equal(got, c.want) {
				t.Errorf("reported %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestChangesWhileVPPWasAwayAreReportedAfterwards(t *testing.T) {
	before, after := calm(), calm()
	after.links["cust0"] = false
	between := before.next(routerView{})
	if got := inShort(eventsBetween(between, after)); !slices.Contains(got, "interface.down cust0") {
		t.Errorf("reported %q", got)
	}
}

func TestEventsAreNumberedWithinARunAndSurviveARestart(t *testing.T) {
	folder := t.TempDir()
	s := openSpool(t, folder, 1<<20)
	teller := &eventRecorder{bootID: bootID, spool: s}
	down := calm()
	down.links["cust0"] = false
	for _, v := range []routerView{calm(), down, calm()} {
		if err := teller.record(v, start); err != nil {
			t.Fatal(err)
		}
	}
	records, err := openSpool(t, folder, 1<<20).Oldest(batch) // the agent was killed
	if err != nil {
		t.Fatal(err)
	}
	report, n, err := composeEvents(func() time.Time { return start })(records)
	if err != nil || n != 4 {
		t.Fatalf("%d events, %v", n, err)
	}
	body := report.(eventsBody)
	want := []string{"vpp.connected 25.10", "intent.applied 42", "interface.down cust0", "interface.up cust0"}
	if got := inShort(body.Events); !slices.Equal(got, want) || body.BootID != bootID.String() {
		t.Errorf("reported %q by %s", got, body.BootID)
	}
	for i, e := range body.Events {
		if e.Seq != int64(i+1) || e.AtMS != start.UnixMilli() {
			t.Errorf("event %d is %+v", i, e)
		}
	}
}

func TestDriftIsDescribedBriefly(t *testing.T) {
	one := plan.Drift{Object: "cust0.100", Field: "admin_up", Desired: "true", Actual: "false"}
	if got := describeDrift([]plan.Drift{one}); got != `admin_up of cust0.100 is "false" instead of "true"` {
		t.Error(got)
	}
	if got := describeDrift(slices.Repeat([]plan.Drift{one}, 9)); !strings.HasSuffix(got, "; and 4 more") {
		t.Error(got)
	}
}

// dyingVPP is an engine that reports drift once, already repaired, and whose VPP dies when routes are
// requested.
type dyingVPP struct {
	shown   bool
	cleared int // how often its tracer was cleared
	// inUse and left are the errors of a search before and after it uses the tracer.
	inUse, left error
	searching   func() // called while a search uses the tracer; nil for none
}

func (e *dyingVPP) ObservedStateToReport(context.Context) (*converge.ObservedState, error) {
	state := &converge.ObservedState{Intent: &intent.Intent{}, Plan: &plan.Plan{}, Snapshot: new(observe.Snapshot).Index()}
	if !e.shown {
		state.Drift = map[intent.Key][]plan.Drift{alice.Key: {{Object: "cust0.100", Field: "admin_up", Desired: "true", Actual: "false"}}}
	}
	e.shown = true
	return state, nil
}
func (e *dyingVPP) Session() (converge.Session, error) { return nil, converge.ErrNoVPP }
func (e *dyingVPP) Status() converge.Status            { return converge.Status{} }
func (e *dyingVPP) Changed() <-chan struct{}           { return nil }
func (e *dyingVPP) Paths() []pathwatch.Watched         { return nil }
func (e *dyingVPP) PathsChanged() <-chan struct{}      { return nil }
func (e *dyingVPP) Rebuild(uint32, string, bool) error { return nil }
func (e *dyingVPP) TestedSince(time.Time) map[intent.Key]bool {
	return nil
}
func (e *dyingVPP) ClearTracer(context.Context) error {
	e.cleared++
	return nil
}

func (e *dyingVPP) UnknownVLANs(_ context.Context, _ []packettrace.VLAN, begin func() error) (map[packettrace.VLAN]int, error) {
	if e.inUse != nil {
		return nil, e.inUse
	}
	if err := begin(); err != nil {
		return nil, err
	}
	if e.searching != nil {
		e.searching()
	}
	return nil, e.left
}

func (e *dyingVPP) PortalFreezes(string, string, time.Time) {}

func TestDriftIsReportedAlthoughVPPDiesBefore(t *testing.T) {
	r := New(Options{
		Engine: &dyingVPP{}, Client: &stubPortal{}, Folder: t.TempDir(), StoreLimit: 1 << 20, Interval: time.Second, Log: quiet, Now: time.Now,
	})
	t.Cleanup(r.close)
	r.prepare(t.Context(), onRequest)
	r.prepare(t.Context(), onRequest)
	records, err := r.events.spool.Oldest(batch)
	if err != nil {
		t.Fatal(err)
	}
	report, _, err := r.events.compose(records)
	if err != nil {
		t.Fatal(err)
	}
	events := report.(eventsBody).Events
	if len(events) != 1 || events[0].Kind != "end.drift" || *events[0].VLL != alice.Key.VLL {
		t.Errorf("reported %q", inShort(events))
	}
}
