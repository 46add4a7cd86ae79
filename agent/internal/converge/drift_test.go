package converge

import (
	"testing"

	interfaces "go.fd.io/govpp/binapi/interface"

	"longline.dev/agent/internal/intent"
)

// fieldsOff returns the fields in which VPP differs from the stored intent.
func (r *router) fieldsOff() map[string]bool {
	r.t.Helper()
	stored, _ := r.store.Current()
	found, _, err := r.Plan(r.t.Context(), stored)
	if err != nil {
		r.t.Fatal(err)
	}
	fields := make(map[string]bool)
	for _, op := range found.Ops {
		fields[op.Drift.Field] = true
	}
	return fields
}

func TestDriftIsOnlyReportedUntilTheIntentIsSentAgain(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.options.Repair = ReportOnly
		end := vxlanEnd(1, r.ports[0])
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: r.index(r.ports[0] + ".101"), Flags: 0})
		stillDown := func(when string) {
			t.Helper()
			if r.repair(t.Context()) || !r.fieldsOff()["admin_up"] {
				t.Errorf("%s: drift was repaired", when)
			}
		}
		stillDown("at once")
		r.convergeNewConnection(t.Context())
		stillDown("after a new connection")
		r.open()
		r.options.Repair = ReportOnly
		r.convergeNewConnection(t.Context())
		stillDown("after a new start of the agent")
		stored, _ := r.store.Current()
		outcome, err := r.Put(t.Context(), stored, "")
		if err != nil {
			t.Fatal(err)
		}
		outcome.mustAllBe(t, "verified")
		if off := r.fieldsOff(); len(off) != 0 {
			t.Errorf("the intent was sent again, and these are still off: %v", off)
		}
	})
}

func TestReportOnlyStillBuildsAnEndWhenItsPortAppears(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.options.Repair = ReportOnly
		drifted, waiting := vxlanEnd(1, r.ports[0]), vxlanEnd(2, "loop7")
		r.put([]intent.End{drifted, waiting})
		r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: r.index(r.ports[0] + ".101"), Flags: 0})
		r.must(&interfaces.CreateLoopbackInstance{IsSpecified: true, UserInstance: 7})
		if !r.repair(t.Context()) {
			t.Error("the port came and nothing was done")
		}
		if off := r.fieldsOff(); len(off) != 1 || !off["admin_up"] {
			t.Errorf("off: %v, want only the reported drift", off)
		}
		if r.repair(t.Context()) {
			t.Error("drift was repaired after all")
		}
	})
}

func TestReportOnlyBuildsEverythingAgainAfterARestartOfVPP(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.options.Repair = ReportOnly
		r.put([]intent.End{vxlanEnd(1, r.ports[0])}).mustAllBe(t, "verified")
		r.restartVPP()
		r.convergeNewConnection(t.Context())
		if off := r.fieldsOff(); len(off) != 0 {
			t.Errorf("off after the restart: %v", off)
		}
	})
}

// reportedDrift returns the reported foreign changes: the last digit of a line's id, and the field.
func (r *router) reportedDrift() map[string]bool {
	r.t.Helper()
	p, err := r.ObservedStateToReport(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	fields := make(map[string]bool)
	for key, drift := range p.Drift {
		for _, d := range drift {
			fields[key.VLL[len(key.VLL)-1:]+" "+d.Field] = true
		}
	}
	return fields
}

func TestDriftThatANewDocumentRepairsIsReportedOnce(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		drifted, changed := vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[0])
		r.put([]intent.End{drifted, changed}).mustAllBe(t, "verified")
		if first := r.reportedDrift(); len(first) != 0 {
			t.Errorf("without drift %v was reported", first)
		}
		r.disconnect(r.ports[0] + ".101")
		changed.Revision, changed.AdminUp = 2, false
		r.put([]intent.End{drifted, changed, vxlanEnd(3, r.ports[1])}).mustAllBe(t, "verified")
		if now := r.reportedDrift(); len(now) != 2 || !now["1 xconnect"] || !now["1 rewrite"] {
			t.Errorf("reported %v, want only the changes of the first", now)
		}
		if again := r.reportedDrift(); len(again) != 0 {
			t.Errorf("reported again %v", again)
		}
	})
}

// TestRepairedDriftIsReported checks that drift is reported once, regardless of other repairs, other readers
// of the state and a lost connection before the next report. A report without the drift follows, so that the
// portal notices if the same drift occurs again.
func TestRepairedDriftIsReported(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		first, second := r.ports[0]+".101", r.ports[0]+".102"
		r.put([]intent.End{vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[0])}).mustAllBe(t, "verified")
		r.reportedDrift()
		for _, change := range []func(){
			func() { r.disconnect(first) }, func() { r.disconnect(second) }, func() { r.setDown(first) },
		} {
			change()
			r.CheckDrift(t.Context())
		}
		if _, err := r.ObservedState(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.Attach(nil)
		r.Attach(r.session)
		select {
		case <-r.Changed():
		default:
		}
		if now := r.reportedDrift(); !now["1 xconnect"] || !now["1 admin_up"] || !now["2 xconnect"] {
			t.Errorf("reported %v, want all changes", now)
		}
		select {
		case <-r.Changed():
		default:
			t.Error("no report follows")
		}
		if again := r.reportedDrift(); len(again) != 0 {
			t.Errorf("reported again %v", again)
		}
	})
}

// TestDriftDuringAConvergeIsReported tries drift before each message: the read-back shows all
// cross-connects.
func TestDriftDuringAConvergeIsReported(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		drifted := vxlanEnd(1, r.ports[0])
		for left := 0; ; left++ {
			r.put([]intent.End{drifted}).mustAllBe(t, "verified")
			r.reportedDrift()
			session := &sessionWithMeddler{Session: r.session, left: left, meddle: func() { r.disconnect(r.ports[0] + ".101") }}
			r.use(session)
			r.put([]intent.End{drifted, vxlanEnd(3, r.ports[1])}).mustAllBe(t, "verified")
			r.use(r.session)
			if !session.meddled {
				return
			}
			r.CheckDrift(t.Context())
			if now := r.reportedDrift(); !now["1 xconnect"] || now["3 xconnect"] {
				t.Errorf("after %d messages: reported %v, want only the changes of the first", left, now)
			}
		}
	})
}

func TestRestartOfVPPIsNoDrift(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		ends := []intent.End{vxlanEnd(1, r.ports[0])}
		r.put(ends).mustAllBe(t, "verified")
		if err := r.restart(); err != nil {
			t.Fatal(err)
		}
		<-r.session.Done()
		r.connect()
		r.furnish()
		r.put(append(ends, vxlanEnd(2, r.ports[0]))).mustAllBe(t, "verified")
		p, err := r.ObservedStateToReport(t.Context())
		if err != nil || len(p.Drift) != 0 {
			t.Errorf("%v, reported %v", err, p.Drift)
		}
	})
}
