package converge

import (
	"context"
	"errors"
	"maps"
	"testing"

	"go.fd.io/govpp/api"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
)

// mustBeAsRead fails the test if the snapshot differs from VPP.
func (r *router) mustBeAsRead(t *testing.T, got *observe.Snapshot) {
	t.Helper()
	full, err := observe.Full(t.Context(), r.session, boot(r.session))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Tunnels) != len(full.Tunnels) || len(got.Interfaces) != len(full.Interfaces) || !maps.Equal(comparable(got), comparable(full)) {
		t.Errorf("observed %d tunnels and %v\nVPP has %d tunnels and %v", len(got.Tunnels), comparable(got), len(full.Tunnels), comparable(full))
	}
	if !maps.Equal(got.LCP, full.LCP) {
		t.Errorf("observed the pairs %v, VPP has %v", got.LCP, full.LCP)
	}
}

// TestQuickObservationReadsEverythingAboutAnInterfaceOfAnEvent: a new interface is read like one without an
// event.
func TestQuickObservationReadsEverythingAboutAnInterfaceOfAnEvent(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.put([]intent.End{vxlanEnd(1, r.ports[0])}).mustAllBe(t, "verified")
		r.repair(t.Context())
		before := r.snapshot()
		r.tunnelByHand(intent.Tunnel{Local: locals[4], Remote: remotes[4], VNI: 777})
		if r.pair != nil {
			r.pair(r.ports[3])
		}
		for _, i := range r.snapshot().Interfaces {
			if before.ByIndex(i.Index) == nil || i.Name == r.ports[3] {
				r.noteEvent(i.Index, 0, 64)
			}
		}
		r.busy.Lock()
		quick, err := r.quickObservation(t.Context(), r.session, r.storedOrEmpty())
		r.busy.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		r.mustBeAsRead(t, quick)
	})
}

// cutSession is a session with a connection that breaks at the first message, or before the requests about
// single interfaces.
type cutSession struct {
	Session
	first bool
}

var errCut = errors.New("the connection is cut")

func (s cutSession) Calls(context.Context, []api.Message) ([]api.Message, error) { return nil, errCut }

func (s cutSession) DumpEach(context.Context, []api.Message, func(int, api.Message)) error {
	return errCut
}

func (s cutSession) Dump(ctx context.Context, requests []api.Message, each func(api.Message)) error {
	if s.first {
		return errCut
	}
	return s.Session.Dump(ctx, requests, each)
}

// TestEventsOfAFailedObservationAreNotLost: the next observation reads their interfaces.
func TestEventsOfAFailedObservationAreNotLost(t *testing.T) {
	cutFrom := map[string]func(Session) Session{
		"at the first message": func(s Session) Session { return cutSession{s, true} },
		"late":                 func(s Session) Session { return cutSession{s, false} },
	}
	for name, read := range map[string]func(*Engine) observeFunc{
		"full": func(e *Engine) observeFunc { return e.fullObservation }, "quick": func(e *Engine) observeFunc { return e.quickObservation },
		"event": func(e *Engine) observeFunc { return e.eventObservation },
	} {
		for when, cut := range cutFrom {
			t.Run(name+" "+when, func(t *testing.T) {
				onEveryVPP(t, func(t *testing.T, r *router) {
					r.put([]intent.End{wholePort(1, r.ports[0])}).mustAllBe(t, "verified")
					r.repair(t.Context())
					r.noteEvent(uint32(r.index(r.ports[0])), 0, 64)
					r.busy.Lock()
					defer r.busy.Unlock()
					if _, err := read(r.Engine)(t.Context(), cut(r.session), r.storedOrEmpty()); err == nil {
						t.Fatal("it did not fail")
					}
					before := r.Status().Statistics.FullObservations
					if _, err := r.quickObservation(t.Context(), r.session, r.storedOrEmpty()); err != nil {
						t.Fatal(err)
					}
					if r.Status().Statistics.FullObservations == before {
						t.Error("the event is forgotten, and the next observation does not read all of VPP")
					}
				})
			})
		}
	}
}
