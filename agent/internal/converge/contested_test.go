package converge

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	interfaces "go.fd.io/govpp/binapi/interface"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/plan"
)

// stopped gives the engine a clock that only the test moves.
func (r *router) stopped() *time.Time {
	clock := time.Now()
	r.now = func() time.Time { return clock }
	return &clock
}

func (r *router) setDown(name string) {
	r.t.Helper()
	r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: r.index(name)})
}

func TestRepairsOfAContestedFieldGetLessFrequent(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		clock := r.stopped()
		end := vxlanEnd(1, r.ports[0])
		access := r.ports[0] + ".101"
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		began := r.Status().Statistics
		r.setDown(access)
		if !r.repair(t.Context()) {
			t.Fatal("a first drift is to be repaired at once")
		}
		for start := *clock; clock.Sub(start) < 10*time.Minute; *clock = clock.Add(time.Second) {
			r.setDown(access)
			r.repair(t.Context())
		}
		totals := r.Status().Statistics
		repairs, fullObservations := totals.Repairs-began.Repairs, totals.FullObservations-began.FullObservations
		// With pauses of 5, 10, 20, ... 300 s, this is the first repair and seven more.
		if repairs < 4 || repairs > 8 {
			t.Errorf("%d repairs in ten minutes", repairs)
		}
		if fullObservations > repairs {
			t.Errorf("%d full observations for %d repairs", fullObservations, repairs)
		}
		*clock = clock.Add(longestRetry)
		if !r.repair(t.Context()) || len(r.fieldsOff()) != 0 {
			t.Error("it is not repaired at last")
		}
	})
}

func TestOtherDriftIsRepairedAtOnceDuringAContest(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		clock := r.stopped()
		contested, other := vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[0])
		r.put([]intent.End{contested, other}).mustAllBe(t, "verified")
		access, tunnel := r.ports[0]+".101", r.tunnelOf(contested.Key)
		for range 3 {
			r.setDown(access)
			r.repair(t.Context())
		}
		if off := r.fieldsOff(); !off["admin_up"] {
			t.Fatal("nothing is left alone: there is no contest to test")
		}
		*clock = clock.Add(time.Second)
		r.setDown(r.ports[0] + ".102")
		if !r.repair(t.Context()) || r.isDown(r.ports[0]+".102") {
			t.Error("another line's first drift was not repaired at once")
		}
		if !r.isDown(access) {
			t.Error("what is contested was repaired together with another line")
		}
		r.disconnect(tunnel)
		if !r.repair(t.Context()) || len(r.fieldsOff()) != 0 {
			t.Error("another object of the same line was not repaired at once")
		}
	})
}

func (r *router) isDown(name string) bool {
	r.t.Helper()
	return !r.snapshot().ByName(name).AdminUp
}

func TestDocumentsForOtherLinesDoNotRepairContestedFields(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.stopped()
		ends := []intent.End{vxlanEnd(1, r.ports[0])}
		r.put(ends).mustAllBe(t, "verified")
		access := r.ports[0] + ".101"
		for n := 2; n < 8; n++ {
			r.setDown(access)
			r.repair(t.Context())
			ends = append(ends, vxlanEnd(n, r.ports[0]))
			if made := r.put(ends).of(t, ends[n-1].Key); made.Status != "verified" {
				t.Fatalf("the new line: %+v %+v", made, made.Reason)
			}
		}
		if repairs := r.Status().Statistics.Repairs; repairs != 1 {
			t.Errorf("%d repairs within a moment", repairs)
		}
		if !r.isDown(access) {
			t.Error("a document for other lines repaired it")
		}
		stored, _ := r.store.Current()
		again, err := r.Put(t.Context(), stored, "")
		if err != nil {
			t.Fatal(err)
		}
		if again.mustAllBe(t, "verified"); r.isDown(access) {
			t.Error("the same document again is to repair everything")
		}
		r.setDown(access)
		ends[0].Revision, ends[0].AdminUp = 2, false
		r.put(ends).mustAllBe(t, "verified")
	})
}

func TestContestedFieldIsReported(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		clock := r.stopped()
		end := vxlanEnd(1, r.ports[0])
		access := r.ports[0] + ".101"
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		contested := func() []Contested {
			t.Helper()
			p, err := r.ObservedState(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return p.Contested[end.Key]
		}
		r.setDown(access)
		r.repair(t.Context())
		if found := contested(); len(found) != 0 {
			t.Errorf("a single change is no contest: %+v", found)
		}
		first := *clock
		*clock = clock.Add(time.Second)
		r.setDown(access)
		r.repair(t.Context())
		want := Contested{Drift: plan.Drift{Object: access, Field: "admin_up", Desired: "true", Actual: "false"}, Since: first, Repairs: 1}
		if found := contested(); !slices.Equal(found, []Contested{want}) {
			t.Errorf("got %+v, want %+v", found, want)
		}
		select {
		case <-r.Changed():
		default:
			t.Error("no token on Changed")
		}
		*clock = clock.Add(longestRetry)
		r.repair(t.Context())
		if found := contested(); len(found) != 1 || found[0].Repairs != 2 {
			t.Errorf("after another repair it is not reported, or with wrong values: %+v", found)
		}
		*clock = clock.Add(calm)
		r.repair(t.Context())
		if found := contested(); len(found) != 0 {
			t.Errorf("after a calm hour still %+v", found)
		}
		r.setDown(access)
		if !r.repair(t.Context()) || len(contested()) != 0 {
			t.Error("after a calm hour it is a first drift again")
		}
	})
}

func TestServeRepairsAContestedLineRarely(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.put([]intent.End{vxlanEnd(1, r.ports[0])}).mustAllBe(t, "verified")
		began, access := r.Status().Statistics, r.index(r.ports[0]+".101")
		ctx, stop := context.WithCancel(t.Context())
		var both sync.WaitGroup
		both.Go(func() { r.Serve(ctx, r.session) })
		both.Go(func() {
			for ctx.Err() == nil {
				_, _ = r.session.Call(ctx, &interfaces.SwInterfaceSetFlags{SwIfIndex: access})
				time.Sleep(50 * time.Millisecond)
			}
		})
		repairs := func() uint64 { return r.Status().Statistics.Repairs - began.Repairs }
		for deadline := time.Now().Add(time.Minute); repairs() < 2 && time.Now().Before(deadline); {
			time.Sleep(20 * time.Millisecond)
		}
		first := time.Now()
		time.Sleep(4 * time.Second)
		within := time.Since(first)
		stop()
		both.Wait()
		totals := r.Status().Statistics
		if got := repairs(); got < 2 || within < 9*time.Second && got > 2 {
			t.Errorf("%d repairs, of which the last but two within %s", got, within)
		}
		// The first observation, the one that a repair is planned from, and one more after a failed
		// attempt.
		if observations := totals.FullObservations - began.FullObservations; observations > 2*repairs()+1 {
			t.Errorf("%d full observations for %d repairs", observations, repairs())
		}
	})
}

// The portal repeats the wanted state under a new number while an end cannot be built.
func TestRepeatedDocumentsDoNotRepairContestedFields(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		clock := r.stopped()
		contested, pending := vxlanEnd(1, r.ports[0]), vxlanEnd(2, "not-there")
		access := r.ports[0] + ".101"
		ends := []intent.End{contested, pending}
		r.put(ends)
		repairs := 0
		for start := *clock; clock.Sub(start) < 10*time.Minute; *clock = clock.Add(10 * time.Second) {
			r.setDown(access)
			answer := r.put(ends)
			if got := answer.of(t, pending.Key); got.Status != "pending" {
				t.Fatalf("the end without a port: %+v", got)
			}
			if !r.isDown(access) {
				repairs++
			} else if got := answer.of(t, contested.Key); got.Reason == nil || got.Reason.Code != "contested" {
				t.Fatalf("it was left alone and answered as %+v", got)
			}
		}
		// With pauses of 5, 10, 20, ... 300 s, and a document every 10 s.
		if repairs < 4 || repairs > 8 {
			t.Errorf("%d repairs in ten minutes of repeated documents", repairs)
		}
		*clock = clock.Add(longestRetry)
		if r.put(ends); r.isDown(access) {
			t.Error("it is not repaired at last")
		}
	})
}
