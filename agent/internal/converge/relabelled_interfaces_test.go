package converge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/plan"
	"longline.dev/agent/internal/vppsim"
)

// relabel manually gives the interfaces of an end another tag, or none for "", and returns the previous
// state.
func (r *router) relabel(tag string, end intent.Key) (before []*plan.EndInterface) {
	r.t.Helper()
	stored, _ := r.store.Current()
	todo, _, err := r.Plan(r.t.Context(), stored)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, h := range todo.Owned {
		if h.End == end {
			before = append(before, h)
			r.tagByHand(h.Interface.Index, tag)
		}
	}
	if len(before) == 0 {
		r.t.Fatalf("the agent owns nothing of %s", end)
	}
	return before
}

// tagByHand sets a tag, or clears it if tag is empty.
func (r *router) tagByHand(index uint32, tag string) {
	r.t.Helper()
	r.must(&interfaces.SwInterfaceTagAddDel{IsAdd: tag != "", SwIfIndex: interface_types.InterfaceIndex(index), Tag: tag})
}

// mustBeRelabelled checks that the end is in conflict with one of these interfaces, by name, index and its
// present tag.
func (e End) mustBeRelabelled(t *testing.T, tag string, among []*plan.EndInterface) {
	t.Helper()
	if e.Status != "conflict" || e.Reason.Code != "relabelled" {
		t.Fatalf("%s is %s: %+v", e.Key, e.Status, e.Reason)
	}
	for _, h := range among {
		if e.Reason.Object == describeInterface(h.Interface) {
			now := fmt.Sprintf("the tag %q", tag)
			if tag == "" {
				now = "no tag"
			}
			if !strings.Contains(e.Reason.Message, now) {
				t.Errorf("the tag it has now is missing in %q", e.Reason.Message)
			}
			return
		}
	}
	t.Errorf("it names %q", e.Reason.Object)
}

// TestRemovalWaitsWhileALineIsRelabelled clears and replaces the tags of every kind of line, with and
// without a restart of the agent before the removal.
func TestRemovalWaitsWhileALineIsRelabelled(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		for _, w := range r.wires() {
			for _, tag := range []string{"", "rack 3, blue cable"} {
				for _, restarted := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%q/%v", w.name(), tag, restarted), func(t *testing.T) {
						ends := r.ends(w, intent.Dot1q)
						before := comparable(r.snapshot())
						r.put(ends).mustAllBe(t, "verified")
						theirs := r.relabel(tag, ends[0].Key)
						unchanged := comparable(r.snapshot())
						if restarted {
							r.open()
						}
						var gone []intent.Tombstone
						for _, e := range ends {
							gone = append(gone, tombstone(e))
						}
						for _, e := range r.put(nil, gone...).Ends {
							e.mustBeRelabelled(t, tag, theirs)
						}
						if after := comparable(r.snapshot()); !maps.Equal(after, unchanged) {
							t.Errorf("got  %v\nwant %v", after, unchanged)
						}
						for _, h := range theirs {
							r.tagByHand(h.Interface.Index, h.Interface.Tag)
						}
						r.Converge(t.Context()).mustAllBe(t, "removed")
						if after := comparable(r.snapshot()); !maps.Equal(after, before) {
							t.Errorf("in the end\n got %v\nwant %v", after, before)
						}
					})
				}
			}
		}
	})
}

func TestClaimedLineIsRemovedAfterARestartOfTheAgent(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		end := vxlanEnd(1, r.ports[0])
		before := comparable(r.snapshot())
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		theirs := r.relabel("rack 3", end.Key)
		r.put(nil, tombstone(end)).of(t, end.Key).mustBeRelabelled(t, "rack 3", theirs)
		access, tunnel := theirs[0], theirs[1]
		if access.Tunnel != nil {
			access, tunnel = tunnel, access
		}
		found, err := r.Claim(t.Context(), end.Key, access.Interface.Name)
		if err != nil || len(found) != 1 || found[0].Interface.Name != access.Interface.Name || found[0].Interface.Tag != "rack 3" {
			t.Fatalf("%v, found %+v", err, found)
		}
		if tag := r.snapshot().ByName(access.Interface.Name).Tag; tag != access.Interface.Tag {
			t.Errorf("the access has the tag %q", tag)
		}
		r.Converge(t.Context()).of(t, end.Key).mustBeRelabelled(t, "rack 3", []*plan.EndInterface{tunnel})
		r.open()
		if found, err = r.Claim(t.Context(), end.Key, ""); err != nil || len(found) != 1 || found[0].Tunnel == nil {
			t.Fatalf("%v, found %+v", err, found)
		}
		if after := comparable(r.snapshot()); !maps.Equal(after, before) {
			t.Errorf("left behind:\n got %v\nwant %v", after, before)
		}
		r.Converge(t.Context()).mustAllBe(t, "removed")
	})
}

func TestReleasedLineKeepsForwardingAndIsReportedAsRemoved(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		end := vxlanEnd(1, r.ports[0])
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		theirs := r.relabel("", end.Key)
		unchanged := comparable(r.snapshot())
		r.put(nil, tombstone(end)).of(t, end.Key).mustBeRelabelled(t, "", theirs)
		if found, err := r.Release(t.Context(), end.Key, ""); err != nil || len(found) != len(theirs) {
			t.Fatalf("%v, found %+v", err, found)
		}
		r.Converge(t.Context()).mustAllBe(t, "removed")
		r.open()
		r.Converge(t.Context()).mustAllBe(t, "removed")
		if after := comparable(r.snapshot()); !maps.Equal(after, unchanged) {
			t.Errorf("got  %v\nwant %v", after, unchanged)
		}
		again := end
		again.Key.VLL = vllID(2)
		if e := r.put([]intent.End{again}).of(t, again.Key); e.Status != "conflict" || e.Reason.Code != "foreign_subinterface" {
			t.Errorf("the next line on that VLAN is %+v %+v", e, e.Reason)
		}
	})
}

// TestRelabelledLineInServiceIsAConflict: the agent does not change the line. A further line on the same VLAN
// is in conflict too, and the reason names the relabelled line. No other line waits.
func TestRelabelledLineInServiceIsAConflict(t *testing.T) {
	for _, repair := range []Repair{Auto, ReportOnly} {
		t.Run(string(repair), func(t *testing.T) {
			onEveryVPP(t, func(t *testing.T, r *router) {
				r.options.Repair = repair
				end, other, late := vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[0]), vxlanEnd(1, r.ports[0])
				late.Key.VLL, late.Tunnel.VNI = vllID(3), 3000
				r.put([]intent.End{end}).mustAllBe(t, "verified")
				theirs := r.relabel("rack 3", end.Key)
				unchanged := comparable(r.snapshot())
				r.repair(t.Context())
				if after := comparable(r.snapshot()); !maps.Equal(after, unchanged) {
					t.Errorf("got  %v\nwant %v", after, unchanged)
				}
				outcome := r.put([]intent.End{end, other})
				outcome.of(t, end.Key).mustBeRelabelled(t, "rack 3", theirs)
				if e := outcome.of(t, other.Key); e.Status != "verified" {
					t.Errorf("another line is %+v %+v", e, e.Reason)
				}
				moved := end
				moved.Revision, moved.Access.Outer, moved.Tunnel.VNI = 2, 200, 2000
				outcome = r.put([]intent.End{moved, other, late})
				outcome.of(t, end.Key).mustBeRelabelled(t, "rack 3", theirs)
				if e := outcome.of(t, late.Key); e.Status != "conflict" || !strings.Contains(e.Reason.Message, "created for VLL end "+end.Key.String()) {
					t.Errorf("the line that wants its VLAN is %+v %+v", e, e.Reason)
				}
				if _, err := r.Claim(t.Context(), end.Key, ""); err != nil {
					t.Fatal(err)
				}
				r.Converge(t.Context()).mustAllBe(t, "verified")
				r.put(nil, tombstone(moved), tombstone(other), tombstone(late)).mustAllBe(t, "removed")
			})
		})
	}
}

// TestPortStaysInUseWhileItsTunnelIsRelabelled: the record of a port with a foreign tag refers to the
// tunnel.
func TestPortStaysInUseWhileItsTunnelIsRelabelled(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		end := wholePort(1, r.ports[1])
		r.tagByHand(uint32(r.index(r.ports[1])), "rack 3")
		before := comparable(r.snapshot())
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		s := r.snapshot()
		tunnel := s.ByIndex(s.Tunnels[0].Index)
		r.tagByHand(tunnel.Index, "")
		for range 2 {
			r.put(nil, tombstone(end)).of(t, end.Key).mustBeRelabelled(t, "", []*plan.EndInterface{{Interface: tunnel}})
			r.open()
		}
		if _, err := r.Claim(t.Context(), end.Key, tunnel.Name); err != nil {
			t.Fatal(err)
		}
		r.Converge(t.Context()).mustAllBe(t, "removed")
		if after := comparable(r.snapshot()); !maps.Equal(after, before) {
			t.Errorf("left behind:\n got %v\nwant %v", after, before)
		}
	})
}

// TestForeignReplacementOfALineIsNotDeleted: a foreign interface may have the key, the index and the name
// of the line's interface. If nothing distinguishes them, the end is in conflict with it until an operator
// releases it. Otherwise it is recognized as foreign.
func TestForeignReplacementOfALineIsNotDeleted(t *testing.T) {
	for name, c := range map[string]struct {
		id     uint32                    // of the foreign sub-interface
		meet   func(*router)             // between the deletion of the line's interface and the creation of the foreign one
		answer string                    // result of the removal
		settle func(*router, intent.Key) // decision of the operator
	}{
		"just like ours":         {101, func(*router) {}, "conflict", func(r *router, end intent.Key) { r.mustRelease(end) }},
		"under another name":     {7, func(*router) {}, "removed", func(*router, intent.Key) {}},
		"after an observation":   {101, func(r *router) { r.options.Repair = ReportOnly; r.repair(r.t.Context()) }, "removed", func(*router, intent.Key) {}},
		"after a restart of VPP": {101, func(r *router) { r.restartVPP() }, "removed", func(*router, intent.Key) {}},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryVPP(t, func(t *testing.T, r *router) {
				end := vxlanEnd(1, r.ports[0])
				r.put([]intent.End{end}).mustAllBe(t, "verified")
				access := r.index(r.ports[0] + ".101")
				r.must(&interfaces.DeleteSubif{SwIfIndex: access})
				c.meet(r)
				r.subByHand(r.ports[0], c.id, end.Access.Outer)
				theirs := r.snapshot().ByName(fmt.Sprintf("%s.%d", r.ports[0], c.id))
				r.put(nil, tombstone(end))
				if e := r.Converge(t.Context()).of(t, end.Key); e.Status != c.answer {
					t.Errorf("the removal is %+v %+v", e, e.Reason)
				}
				c.settle(r, end.Key)
				r.Converge(t.Context()).mustAllBe(t, "removed")
				if now := r.snapshot().ByName(theirs.Name); now == nil || fmt.Sprintf("%+v", *now) != fmt.Sprintf("%+v", *theirs) {
					t.Errorf("theirs is %+v, was %+v", now, theirs)
				}
			})
		})
	}
}

func (r *router) mustRelease(end intent.Key) {
	r.t.Helper()
	if _, err := r.Release(r.t.Context(), end, ""); err != nil {
		r.t.Fatal(err)
	}
}

func TestClaimAndReleaseNameTheCauseOfARefusal(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		end, relabelled, never := vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[0]), vxlanEnd(3, r.ports[0])
		r.put([]intent.End{end, relabelled}).mustAllBe(t, "verified")
		r.subByHand(r.ports[1], 7, 7)
		r.relabel("rack 3", relabelled.Key)
		before := comparable(r.snapshot())
		for why, c := range map[string]struct {
			end       intent.Key
			name, say string
		}{
			"nothing is relabelled":      {end.Key, "", "nothing of VLL end " + end.Key.String() + " is relabelled"},
			"this is not relabelled":     {end.Key, "loop100.101", "loop100.101 (sw_if_index "},
			"nothing was made for it":    {never.Key, "", "nothing that was made for VLL end " + never.Key.String() + " exists"},
			"no such interface":          {relabelled.Key, "loop100.9", "VPP has no interface loop100.9"},
			"another line's":             {relabelled.Key, "loop100.101", "belongs to VLL end " + end.Key.String() + " and not to"},
			"another line's, relabelled": {end.Key, "loop100.102", "was made for VLL end " + relabelled.Key.String() + " and not for"},
			"somebody's":                 {end.Key, "loop101.7", "was not made by the agent in this run of VPP"},
			"a port":                     {end.Key, "loop101", "was not made by the agent in this run of VPP"},
		} {
			for decision, decide := range map[string]func(context.Context, intent.Key, string) ([]*plan.EndInterface, error){
				"claim": r.Claim, "release": r.Release,
			} {
				found, err := decide(t.Context(), c.end, c.name)
				var refused *NotRelabelledError
				if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.say) || found != nil {
					t.Errorf("%s, %s: %v, found %v", why, decision, err, found)
				}
			}
		}
		if after := comparable(r.snapshot()); !maps.Equal(after, before) {
			t.Errorf("got  %v\nwant %v", after, before)
		}
		r.Attach(nil)
		if _, err := r.Claim(t.Context(), relabelled.Key, ""); !errors.Is(err, ErrNoVPP) {
			t.Errorf("without VPP: %v", err)
		}
	})
}

// TestReleaseRemovesThePolicer: it is deleted with its end, and the next policer gets its index.
func TestReleaseRemovesThePolicer(t *testing.T) {
	onSims(t, func(t *testing.T, r *router, sim *vppsim.Sim) {
		_, end := policedEnds(r)
		next := vxlanEnd(3, r.ports[0])
		next.Bandwidth = profile
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		r.relabel("rack 3", end.Key)
		r.mustRelease(end.Key)
		r.put(nil, tombstone(end)).mustAllBe(t, "removed")
		r.put([]intent.End{next}).mustAllBe(t, "verified")
		if policer, times := sim.Policed(r.ports[0] + ".102"); times != 0 {
			t.Errorf("%s works on it %d times", policer, times)
		}
	})
}
