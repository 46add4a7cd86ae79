package converge

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/vpp"
)

var errCrash = errors.New("the agent dies here")

// fault is an event that happens after that many confirmed changes of VPP.
type fault struct {
	name string
	// strike is called with the requests that are not sent any more. Afterwards the session returns an
	// error.
	strike func(*router, *vpp.Session, []api.Message)
	// recover restores the environment before the next attempt.
	recover func(*router)
	// forgets is set if the owner of created but untagged objects cannot be determined afterwards.
	forgets bool
}

func nothing(*router, *vpp.Session, []api.Message) {}

// restarted restarts VPP, which comes back empty, and restores the foreign configuration.
func restarted(r *router, session *vpp.Session, _ []api.Message) {
	if err := r.restart(); err != nil {
		r.t.Fatal(err)
	}
	for session.Err() == nil { // so that the session notices it immediately
		_, _ = session.Call(context.Background(), &memclnt.ControlPing{})
	}
}

func comeBack(r *router) {
	r.connect()
	r.furnish()
	r.furnishForeign()
	r.open()
}

// reconnected breaks the connection. VPP keeps running.
func reconnected(r *router) {
	r.session.Close()
	r.connect()
}

func loseJournal(r *router) {
	if err := os.Remove(filepath.Join(r.folder, "journal.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		r.t.Fatal(err)
	}
	r.open()
}

var faults = []fault{
	{name: "the agent dies", strike: nothing, recover: (*router).open},
	{name: "the connection breaks", strike: nothing, recover: reconnected},
	{name: "VPP stalls, and does the rest without an answer", recover: reconnected,
		strike: func(r *router, session *vpp.Session, rest []api.Message) {
			_, _ = session.Calls(context.Background(), rest)
		}},
	{name: "VPP restarts", strike: restarted, recover: comeBack},
	{name: "the agent dies and its journal is lost", strike: nothing, recover: loseJournal, forgets: true},
}

// faulty is a session with a fault after that many changes of VPP.
type faulty struct {
	*vpp.Session
	left   int
	struck bool
	strike func([]api.Message)
}

func (f *faulty) Calls(ctx context.Context, requests []api.Message) ([]api.Message, error) {
	if !isChange(requests) {
		return f.Session.Calls(ctx, requests)
	}
	if len(requests) > f.left {
		if _, err := f.Session.Calls(ctx, requests[:f.left]); err != nil {
			return nil, err
		}
		f.struck = true
		f.strike(requests[f.left:])
		f.left = 0
		return nil, errCrash
	}
	f.left -= len(requests)
	return f.Session.Calls(ctx, requests)
}

var queries = map[string]bool{
	"feature_is_enabled": true, "cli_inband": true, "sw_interface_get_table": true, "sw_interface_ip6_get_link_local_address": true,
	"classify_table_ids": true, "classify_table_info": true,
}

// isChange distinguishes changes from the queries of an observation.
func isChange(requests []api.Message) bool {
	return len(requests) > 0 && !queries[requests[0].GetMessageName()]
}

// step is an intent with the final status of all its ends.
type step struct {
	present []intent.End
	removed []intent.Tombstone
	status  string
}

// newKeys returns a first intent, one in which everything has another key, and an empty one.
func (r *router) newKeys() []step {
	first := []intent.End{vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[1])}
	first[1].Access = intent.Access{Interface: r.ports[1], Tagging: intent.Untagged, Exact: true}
	first[0].Bandwidth, first[1].Bandwidth = profile, profile
	second := []intent.End{vxlanEnd(1, r.ports[2]), vxlanEnd(2, r.ports[0])}
	for i := range second {
		second[i].Tunnel.VNI += 5000
		second[i].Revision = 2
	}
	second[0].Bandwidth = profile
	gone := []intent.Tombstone{tombstone(second[0]), tombstone(second[1])}
	return []step{{first, nil, "verified"}, {second, nil, "verified"}, {nil, gone, "removed"}}
}

// otherKinds returns GENEVE with two tags, GRE with two others and a local cross-connect, then changes of
// these in place, with a key for the GRE tunnel, and an empty intent.
func (r *router) otherKinds() []step {
	geneve, gre := vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[1])
	geneve.Tunnel.Encapsulation, geneve.Access.Tagging, geneve.Access.Inner = intent.GENEVE, intent.QinQ, 7
	gre.Tunnel.Encapsulation, gre.Tunnel.VNI, gre.Access.Tagging, gre.Access.Inner = intent.GRE, 0, intent.Dot1ad, 7
	near := vxlanEnd(3, r.ports[0])
	near.Tunnel = intent.Tunnel{Encapsulation: intent.L2XC}
	far := near
	far.End, far.Access.Interface = "z", r.ports[1]
	first := []intent.End{geneve, gre, near, far}
	var second []intent.End
	var gone []intent.Tombstone
	for _, end := range first {
		end.Revision, end.AdminUp, end.Frame = 2, false, 9500
		if end.Tunnel.Encapsulation == intent.GRE && r.can(observe.CanGREKeys) {
			end.Tunnel.GREKey = 100
		}
		second, gone = append(second, end), append(gone, tombstone(end))
	}
	return []step{{first, nil, "verified"}, {second, nil, "verified"}, {nil, gone, "removed"}}
}

// tests returns a line that is tested before it is handed over and again while it is in service, and an
// empty intent.
func (r *router) tests() []step {
	untagged, vlan := testedEnd(1, r.ports[0]), testedEnd(2, r.ports[1])
	untagged.Access = intent.Access{Interface: r.ports[0], Tagging: intent.Untagged, Exact: true}
	vlan.Tunnel.Encapsulation = intent.GENEVE
	var sequence []step
	for n, status := range []string{"testing", "verified", "testing", "verified"} {
		var ends []intent.End
		for _, end := range []intent.End{untagged, vlan} {
			end.Revision, end.Testing = int32(n+1), status == "testing"
			ends = append(ends, end)
		}
		sequence = append(sequence, step{ends, nil, status})
	}
	last := sequence[len(sequence)-1].present
	return append(sequence, step{nil, []intent.Tombstone{tombstone(last[0]), tombstone(last[1])}, "removed"})
}

// TestFaultBetweenAnyTwoMessagesIsRepaired tries each fault after each message of several sequences. The
// next attempt succeeds. At the end VPP is as it was before the first step, and foreign objects were never
// changed.
func TestFaultBetweenAnyTwoMessagesIsRepaired(t *testing.T) {
	sequences := map[string]func(*router) []step{
		"new keys": (*router).newKeys, "other kinds": (*router).otherKinds, "tests": (*router).tests,
	}
	for name, sequence := range sequences {
		for n, f := range faults {
			t.Run(name+"/"+f.name, func(t *testing.T) {
				onEveryVPP(t, func(t *testing.T, r *router) {
					r.furnishForeign()
					first, stride, isReal := 0, 1, r.forwards == nil // real VPPs are slower
					switch {
					case isReal && testing.Short():
						first, stride = n, 8
					case isReal && name != "new keys":
						stride = 3
					}
					r.strikeEverywhere(t, f, sequence, first, stride)
				})
			})
		}
	}
}

// strikeEverywhere tries the fault after each number of messages, or after some, until the sequence has no
// more messages.
func (r *router) strikeEverywhere(t *testing.T, f fault, sequence func(*router) []step, first, stride int) {
	for after, struck := first, true; struck; after += stride {
		struck = r.strikeOnce(t, f, sequence(r), after)
		if t.Failed() {
			t.Fatalf("after %d messages", after)
		}
		if after > 150 {
			t.Fatal("there cannot be so many messages")
		}
	}
}

// strikeOnce reports whether the fault happened during the sequence.
func (r *router) strikeOnce(t *testing.T, f fault, sequence []step, after int) (struck bool) {
	before := comparable(r.snapshot())
	for n, step := range sequence {
		session := &faulty{Session: r.session, left: after}
		session.strike = func(rest []api.Message) { f.strike(r, r.session, rest) }
		r.Attach(session)
		outcome := r.put(step.present, step.removed...)
		r.Attach(r.session)
		if session.struck {
			struck = true
			if outcome.Applied {
				t.Errorf("step %d: %s, and the outcome says applied", n, f.name)
			}
			f.recover(r)
		}
		again := r.Converge(t.Context())
		if f.forgets {
			r.clearOrphans(t, again)
			again = r.Converge(t.Context())
		}
		again.mustAllBe(t, step.status)
	}
	if now := comparable(r.snapshot()); !maps.Equal(now, before) {
		t.Errorf("in the end\n got %v\nwant %v", now, before)
	}
	return struck
}

// clearOrphans acts as the operator: each conflict must name an object without a tag, and the operator
// deletes it.
func (r *router) clearOrphans(t *testing.T, o *Outcome) {
	t.Helper()
	s, deleted := r.snapshot(), make(map[uint32]bool)
	for _, end := range o.Ends {
		if end.Reason == nil {
			continue
		}
		found := false
		for _, i := range s.Interfaces {
			if end.Reason.Object == describeInterface(i) && i.Tag == "" && end.Status == "conflict" {
				found = true
				if !deleted[i.Index] { // both ends of a local cross-connect name it
					deleted[i.Index] = true
					r.deleteByHand(s, i)
				}
			}
		}
		if !found {
			t.Errorf("%s is %s: %+v", end.Key, end.Status, end.Reason)
		}
	}
	r.deleteUntagged(t)
}
