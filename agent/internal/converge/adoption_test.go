package converge

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/vppsim"
)

// released returns tombstones of ends that are released, and the tags that they get.
func released(ends []intent.End, accessTag, tunnelTag string) (all []intent.Tombstone) {
	for _, e := range ends {
		t := tombstone(e)
		t.Release, t.AccessTag, t.TunnelTag = true, accessTag, tunnelTag
		all = append(all, t)
	}
	return all
}

// adopted returns the same ends for another VLL, which adopts the existing interfaces.
func adopted(ends []intent.End, vll int) []intent.End {
	ends = slices.Clone(ends)
	for n := range ends {
		ends[n].VLL, ends[n].Adopt, ends[n].Bandwidth = vllID(vll), true, intent.Bandwidth{}
	}
	return ends
}

// inService returns the same ends after the adoption.
func inService(ends []intent.End) []intent.End {
	ends = slices.Clone(ends)
	for n := range ends {
		ends[n].Adopt, ends[n].Revision = false, ends[n].Revision+1
	}
	return ends
}

// untagged returns the state of VPP without the tags of the agent's interfaces.
func (r *router) untagged() map[string]string {
	s := r.snapshot()
	for _, i := range s.Interfaces {
		i.Tag = ""
	}
	return comparable(s)
}

func (r *router) tags() map[string]string {
	tags := make(map[string]string)
	for _, i := range r.snapshot().Interfaces {
		if i.Tag != "" {
			tags[i.Name] = i.Tag
		}
	}
	return tags
}

// TestAdoptionAndReleaseChangeOnlyTags: a line of one VLL is released and so becomes foreign. Another VLL
// adopts it, has it in service and releases it.
func TestAdoptionAndReleaseChangeOnlyTags(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		for _, w := range r.wires() {
			for _, tagging := range []intent.Tagging{intent.Untagged, intent.Dot1q, intent.QinQ, intent.Dot1ad} {
				t.Run(fmt.Sprintf("%s/%s", w.name(), tagging), func(t *testing.T) {
					before := comparable(r.snapshot())
					made := r.ends(w, tagging)
					accessTag := "cust-7"
					if tagging == intent.Untagged {
						accessTag = "" // a port had none
					}
					r.put(made).mustAllBe(t, "verified")
					ours := r.untagged()
					r.put(nil, released(made, accessTag, "by hand")...).mustAllBe(t, "removed")
					theirs := r.tags()
					for name, tag := range theirs {
						if tag != "cust-7" && tag != "by hand" {
							t.Errorf("%s has the tag %q", name, tag)
						}
					}
					r.mustBeOnly(t, ours)

					ends := adopted(made, 2)
					r.put(ends).mustAllBe(t, "verified")
					r.mustBeOnly(t, ours)
					r.mustForward(t, ends)
					r.put(inService(ends)).mustAllBe(t, "verified")
					r.mustBeOnly(t, ours)

					r.put(nil, released(inService(ends), accessTag, "by hand")...).mustAllBe(t, "removed")
					r.mustBeOnly(t, ours)
					if now := r.tags(); !maps.Equal(now, theirs) {
						t.Errorf("the tags are %v, and were %v", now, theirs)
					}
					again := adopted(made, 3)
					r.put(again).mustAllBe(t, "verified")
					var gone []intent.Tombstone
					for _, e := range again {
						gone = append(gone, tombstone(e))
					}
					r.put(nil, gone...).mustAllBe(t, "removed")
					if after := comparable(r.snapshot()); !reflect.DeepEqual(after, before) {
						t.Errorf("left behind:\n got %+v\nwant %+v", after, before)
					}
				})
			}
		}
	})
}

// mustBeOnly checks that VPP has this state, apart from tags.
func (r *router) mustBeOnly(t *testing.T, then map[string]string) {
	t.Helper()
	if now := r.untagged(); !reflect.DeepEqual(now, then) {
		t.Errorf("changed:\n got %+v\nwant %+v", now, then)
	}
}

func TestDifferingLineIsNotAdoptedAndNotChanged(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*router, *intent.End)
		says   string
	}{
		"another VLAN": {func(_ *router, e *intent.End) { e.Access.Outer = 77 }, "no unowned sub-interface for VLAN 77"},
		"another VNI":  {func(_ *router, e *intent.End) { e.Tunnel.VNI = 77 }, "no unowned tunnel"},
		"not exact":    {func(_ *router, e *intent.End) { e.Access.Exact = false }, "exact-match true"},
		"down":         {func(_ *router, e *intent.End) { e.AdminUp = false }, "admin-up true"},
		"one way": {func(r *router, _ *intent.End) {
			r.must(&l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: r.index("vxlan_tunnel0"), Enable: false})
		}, "vxlan_tunnel0 is cross-connected nowhere"},
		"keeps its tag": {func(r *router, _ *intent.End) {
			r.must(&l2.L2InterfaceVlanTagRewrite{SwIfIndex: r.index(r.ports[0] + ".101")})
		}, "tag rewrite 0 and not 3"},
		"a tunnel that is down": {func(r *router, _ *intent.End) { r.setDown("vxlan_tunnel0") }, "vxlan_tunnel0 is down"},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryVPP(t, func(t *testing.T, r *router) {
				made := []intent.End{vxlanEnd(1, r.ports[0])}
				r.put(made).mustAllBe(t, "verified")
				r.put(nil, released(made, "somebody's", "")...).mustAllBe(t, "removed")
				ends := adopted(made, 2)
				c.change(r, &ends[0])
				before := comparable(r.snapshot())
				for range 2 {
					e := r.put(ends).of(t, ends[0].Key)
					if e.Status != "conflict" || e.Reason.Code != "adoption_differs" || !strings.Contains(e.Reason.Message, c.says) {
						t.Errorf("got %+v %+v", e, e.Reason)
					}
				}
				r.put(nil, released(ends, "", "")...).mustAllBe(t, "removed")
				if after := comparable(r.snapshot()); !reflect.DeepEqual(after, before) {
					t.Errorf("changed:\n got %+v\nwant %+v", after, before)
				}
				if found := r.circuits(); len(found) == 0 {
					t.Error("it is no longer found")
				}
			})
		})
	}
}

// TestForeignPolicedSubInterfaceIsNotAdopted: a second policer would work next to the foreign one.
func TestForeignPolicedSubInterfaceIsNotAdopted(t *testing.T) {
	sim, err := vppsim.Start(t.Context(), vppsim.Config{Version: "26.06-vppsim"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Stop)
	r := newRouter(t, sim.APISocket(), sim.StatsSocket())
	made := []intent.End{vxlanEnd(1, r.ports[0])}
	r.put(made).mustAllBe(t, "verified")
	r.put(nil, released(made, "", "")...).mustAllBe(t, "removed")
	r.policeByHand(r.ports[0] + ".101")
	ends := adopted(made, 2)
	if e := r.put(ends).of(t, ends[0].Key); e.Reason == nil || e.Reason.Code != "adoption_differs" || !strings.Contains(e.Reason.Message, "a policer") {
		t.Errorf("got %+v %+v", e, e.Reason)
	}
}

// TestPolicedLineIsNotReleasedWithAForeignTag: its policer would be deleted while in use, and VPP reuses
// the index.
func TestPolicedLineIsNotReleasedWithAForeignTag(t *testing.T) {
	onSims(t, func(t *testing.T, r *router, _ *vppsim.Sim) {
		_, vlan := policedEnds(r)
		r.put([]intent.End{vlan}).mustAllBe(t, "verified")
		if len(r.snapshot().Policers) == 0 {
			t.Skip("this release does not police VLANs")
		}
		r.relabel("somebody's", vlan.Key)
		gone := released([]intent.End{vlan}, "", "")
		if e := r.put(nil, gone...).of(t, vlan.Key); e.Status != "conflict" || e.Reason.Code != "relabelled" {
			t.Errorf("got %+v %+v", e, e.Reason)
		}
		if len(r.snapshot().Policers) != 1 {
			t.Error("its policer is gone")
		}
		if _, err := r.Release(t.Context(), vlan.Key, ""); err != nil {
			t.Fatal(err)
		}
		r.put(nil, gone...).mustAllBe(t, "removed")
		if s := r.snapshot(); len(s.Policers) != 0 || s.Classified[s.ByName(r.ports[0]+".102").Index] {
			t.Errorf("left behind: %v on %v", s.Policers, s.Policed)
		}
	})
}

func TestAdoptionNeedsThePermissionOfTheAgentsFile(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		made := []intent.End{vxlanEnd(1, r.ports[0])}
		r.put(made).mustAllBe(t, "verified")
		r.put(nil, released(made, "somebody's", "")...).mustAllBe(t, "removed")
		before := comparable(r.snapshot())
		r.options.Adoption = false
		ends := adopted(made, 2)
		for range 2 {
			if e := r.put(ends).of(t, ends[0].Key); e.Status != "conflict" || e.Reason.Code != "adoption_refused" {
				t.Errorf("got %+v %+v", e, e.Reason)
			}
		}
		if after := comparable(r.snapshot()); !reflect.DeepEqual(after, before) {
			t.Errorf("changed:\n got %+v\nwant %+v", after, before)
		}
		r.options.Adoption = true
		r.put(ends).mustAllBe(t, "verified")
	})
}

func TestARebuildOfAnotherLineAdoptsNothingWithoutThePermission(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		made, other := []intent.End{vxlanEnd(1, r.ports[0])}, vxlanEnd(2, r.ports[0])
		r.put(made).mustAllBe(t, "verified")
		access := r.accessName(made[0])
		r.put(nil, released(made, "somebody's", "")...).mustAllBe(t, "removed")
		r.options.Adoption = false
		if e := r.put(append(adopted(made, 3), other)).of(t, other.Key); e.Status != "verified" {
			t.Fatalf("got %+v %+v", e, e.Reason)
		}
		writes, rebuilt := r.writes(), r.accessName(other)
		if err := r.Rebuild(uint32(r.index(rebuilt)), rebuilt, true); err != nil {
			t.Fatal(err)
		}
		r.CheckDrift(t.Context())
		if r.writes() == writes || r.accessName(other) == "" {
			t.Error("the other line was not rebuilt")
		}
		if tag := r.tags()[access]; tag != "somebody's" {
			t.Errorf("%s has the tag %q", access, tag)
		}
	})
}

func TestLineOfAnotherVLLIsNotAdopted(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		made := []intent.End{vxlanEnd(1, r.ports[0])}
		r.put(made).mustAllBe(t, "verified")
		before := comparable(r.snapshot())
		// The first VLL is no longer named: its interfaces are quarantined, and no VLL may adopt them.
		ends := adopted(made, 2)
		if e := r.put(ends).of(t, ends[0].Key); e.Status != "conflict" || e.Reason.Code != "adoption_differs" {
			t.Errorf("got %+v %+v", e, e.Reason)
		}
		if after := comparable(r.snapshot()); !reflect.DeepEqual(after, before) {
			t.Errorf("changed:\n got %+v\nwant %+v", after, before)
		}
	})
}

// takeover returns the steps of a line from one VLL to a foreign owner, to another VLL, and to its removal.
func (r *router) takeover() []step {
	whole, vlan := vxlanEnd(1, r.ports[1]), vxlanEnd(2, r.ports[0])
	whole.Access = accessOf(intent.Untagged, r.ports[1])
	made := []intent.End{whole, vlan}
	var ends []intent.End
	for n, end := range made {
		ends = append(ends, adopted([]intent.End{end}, n+3)...)
	}
	last := inService(ends)
	last[1].Bandwidth = profile
	theirs := append(released(made[:1], "", "theirs"), released(made[1:], "somebody's", "theirs")...)
	return []step{
		{made, nil, "verified"}, {nil, theirs, "removed"}, {ends, nil, "verified"},
		{last, nil, "verified"}, {nil, []intent.Tombstone{tombstone(last[0]), tombstone(last[1])}, "removed"},
	}
}

// TestFaultDuringReleaseOrAdoptionIsRepaired covers all faults except a restart of VPP, after which there
// is nothing to adopt.
func TestFaultDuringReleaseOrAdoptionIsRepaired(t *testing.T) {
	for _, f := range faults {
		if f.name == "VPP restarts" {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			onEveryVPP(t, func(t *testing.T, r *router) {
				r.furnishForeign()
				stride := 1
				if isReal := r.forwards == nil; isReal {
					stride = 3
				}
				r.strikeEverywhere(t, f, (*router).takeover, 0, stride)
			})
		})
	}
}

func TestReleaseKeepsASuspendedLineDown(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		end := vxlanEnd(1, r.ports[0])
		end.AdminUp = false
		end.Access = accessOf(intent.Untagged, r.ports[1])
		r.must(&interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: r.index(r.ports[1]), Tag: "rack 7"})
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		before := r.untagged()
		r.put(nil, released([]intent.End{end}, "", "")...).mustAllBe(t, "removed")
		r.mustBeOnly(t, before)
		if tag := r.snapshot().ByName(r.ports[1]).Tag; tag != "rack 7" {
			t.Errorf("the port's tag is %q", tag)
		}
		if flags := r.snapshot().ByName(r.ports[1]); flags.AdminUp {
			t.Error("the port came up")
		}
		r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: r.index(r.ports[1]), Flags: interface_types.IF_STATUS_API_FLAG_ADMIN_UP})
	})
}
