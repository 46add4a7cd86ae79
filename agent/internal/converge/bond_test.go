package converge

import (
	"testing"

	"go.fd.io/govpp/binapi/bond"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"longline.dev/agent/internal/intent"
)

const adminUp = interface_types.IF_STATUS_API_FLAG_ADMIN_UP

func (r *router) setAdmin(name string, flags interface_types.IfStatusFlags) {
	r.t.Helper()
	r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: r.index(name), Flags: flags})
}

// bondOf creates a bond of these ports that is up.
func (r *router) bondOf(members ...string) string {
	r.t.Helper()
	for _, member := range members {
		r.bond(member)
	}
	r.setAdmin("BondEthernet7", adminUp)
	return "BondEthernet7"
}

// TestNoLineIsCreatedOnAMemberOfABond: VPP accepts such a line, but passes all frames of the member to its
// bond.
func TestNoLineIsCreatedOnAMemberOfABond(t *testing.T) {
	for name, access := range map[string]intent.Access{
		"whole port": {Tagging: intent.Untagged, Exact: true}, "dot1q": {Tagging: intent.Dot1q, Outer: 100, Exact: true},
		"qinq":   {Tagging: intent.QinQ, Outer: 100, Inner: 110, Exact: true},
		"dot1ad": {Tagging: intent.Dot1ad, Outer: 100, Inner: 110, Exact: true},
	} {
		for _, local := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", local cross-connect"}[local], func(t *testing.T) {
				onEveryVPP(t, func(t *testing.T, r *router) {
					bonded := r.bondOf(r.ports[0])
					ends := []intent.End{lineOn(r.ports[0], access)}
					if local {
						ends[0].Tunnel = intent.Tunnel{Encapsulation: intent.L2XC}
						other := ends[0]
						other.End, other.Access = "z", vxlanEnd(1, r.ports[1]).Access
						ends = append(ends, other)
					}
					before := len(r.snapshot().Interfaces)
					for _, e := range r.put(ends).Ends {
						if e.Status != "conflict" || e.Reason.Code != "port_in_use" || e.Reason.Object != describeInterface(r.snapshot().ByName(bonded)) {
							t.Errorf("%s is %s: %+v", e.Key, e.Status, e.Reason)
						}
					}
					if after := len(r.snapshot().Interfaces); after != before {
						t.Errorf("%d interfaces, before %d", after, before)
					}
				})
			})
		}
	}
}

// TestLineReportsThatItsPortJoinedABond also covers a line in service, and a quick observation.
func TestLineReportsThatItsPortJoinedABond(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		ends := []intent.End{vxlanEnd(1, r.ports[0]), wholePort(2, r.ports[1])}
		r.put(ends).mustAllBe(t, "verified")
		r.bondOf(r.ports[0], r.ports[1])
		for _, e := range r.Converge(t.Context()).Ends {
			if e.Status != "conflict" || e.Reason.Code != "port_in_use" {
				t.Errorf("%s is %s: %+v", e.Key, e.Status, e.Reason)
			}
		}
	})
}

// TestLineOnABondCarriesFrames: the bond is the line's port, and its members carry the frames.
func TestLineOnABondCarriesFrames(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		member := r.generatedPort(7)
		bonded := r.bondOf(member)
		end := vxlanEnd(1, bonded)
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		if got := r.send(member, bonded+".101", "81000065"); got != sentFrames {
			t.Errorf("the line got %d frames of %d", got, sentFrames)
		}
	})
}

// TestBondHasALinkWhileAMemberIsActive: VPP's own flag is set even without a member.
func TestBondHasALinkWhileAMemberIsActive(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		bonded := r.bondOf(r.ports[0], r.ports[1])
		r.put([]intent.End{vxlanEnd(1, bonded)}).mustAllBe(t, "verified")
		links := func(when string, want bool) {
			t.Helper()
			s, err := r.quickObservation(t.Context(), r.session)
			if err != nil {
				t.Fatal(err)
			}
			if s.ByName(bonded).LinkUp != want || s.ByName(bonded+".101").LinkUp != want {
				t.Errorf("%s: the bond's link is %t, its sub-interface's %t", when, s.ByName(bonded).LinkUp, s.ByName(bonded+".101").LinkUp)
			}
		}
		links("two members", true)
		r.setAdmin(r.ports[0], 0)
		links("one member", true)
		r.setAdmin(r.ports[1], 0)
		links("no member", false)
		r.setAdmin(r.ports[0], adminUp)
		links("one member again", true)
	})
}

// areUp returns which of these ports are up.
func (r *router) areUp(names ...string) (up []bool) {
	r.t.Helper()
	s := r.snapshot()
	for _, name := range names {
		up = append(up, s.ByName(name).AdminUp)
	}
	return up
}

func (r *router) mustBeUp(when string, names []string, want ...bool) {
	r.t.Helper()
	for n, up := range r.areUp(names...) {
		if up != want[n] {
			r.t.Errorf("%s: %s is up: %t, want %t", when, names[n], up, want[n])
		}
	}
}

func TestMembersOfABondFollowTheFarEndsLink(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		names := []string{"", r.ports[0], r.ports[1], r.ports[2]}
		names[0] = r.bondOf(names[1:]...)
		r.setAdmin(names[3], 0) // an operator had shut it down before
		end := wholePort(1, names[0])
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		r.mustBeUp("before", names, true, true, true, false)
		end.UNILinkDown = true
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		r.mustBeUp("while the far end has no link", names, false, false, false, false)
		r.setAdmin(names[1], adminUp)
		if !r.repair(t.Context()) {
			t.Error("the member that another client set up is not repaired")
		}
		r.mustBeUp("after the repair", names, false, false, false, false)
		r.open() // the claims must be on disk
		end.UNILinkDown = false
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		r.mustBeUp("when the link is back", names, true, true, true, false)
		if claims := r.journal.Of(boot(r.session)).Claims; len(claims) != 1 || claims[0].Member != "" {
			t.Errorf("claimed: %+v", claims)
		}
		r.setAdmin(names[1], 0) // a port that the operator shuts down now stays down
		r.repair(t.Context())
		r.mustBeUp("when the operator shuts one", names, true, false, true, false)
	})
}

// TestMembersComeUpAgainWithoutTheLine: an operator's port must not stay down because of a line that no
// longer exists.
func TestMembersComeUpAgainWithoutTheLine(t *testing.T) {
	for name, finish := range map[string]func(r *router, end intent.End){
		"the line is removed":         func(r *router, end intent.End) { r.put(nil, tombstone(end)) },
		"the intent forgets the line": func(r *router, _ intent.End) { r.put(nil) },
		"the line moves to a port": func(r *router, end intent.End) {
			end.Access.Interface = r.ports[2]
			end.UNILinkDown = false
			r.put([]intent.End{end})
		},
		"another client uses the bond": func(r *router, end intent.End) { r.subByHand(end.Access.Interface, 7, 7); r.repair(r.t.Context()) },
		"the member leaves the bond": func(r *router, _ intent.End) {
			r.must(&bond.BondDetachMember{SwIfIndex: r.index(r.ports[0])})
			r.repair(r.t.Context())
		},
		"drift is only reported, the bond used": func(r *router, end intent.End) {
			r.options.Repair = ReportOnly
			r.subByHand(end.Access.Interface, 7, 7)
			r.repair(r.t.Context())
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryVPP(t, func(t *testing.T, r *router) {
				names := []string{r.ports[0]}
				end := wholePort(1, r.bondOf(r.ports[0], r.ports[1]))
				end.UNILinkDown = true
				r.put([]intent.End{end}).mustAllBe(t, "verified")
				r.mustBeUp("at first", names, false)
				r.open()
				finish(r, end)
				r.mustBeUp("then", names, true)
			})
		})
	}
}

// TestBondHasTheSpeedOfItsActiveMembers: VPP reports no speed of a bond. Without known speeds of members, no
// speed is shown. TestSpeedOfABond of package observe checks the sums.
func TestBondHasTheSpeedOfItsActiveMembers(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		bonded := r.bondOf(r.ports[0], r.ports[1])
		speed := func(name string) uint64 { return r.snapshot().ByName(name).SpeedBPS }
		first, second := speed(r.ports[0]), speed(r.ports[1])
		if (first == 0) != (second == 0) {
			t.Fatalf("the members run at %d and %d bit/s", first, second)
		}
		if got := speed(bonded); got != first+second {
			t.Errorf("the bond runs at %d bit/s, want %d", got, first+second)
		}
		r.setAdmin(r.ports[1], 0)
		if got := speed(bonded); got != first {
			t.Errorf("without one member the bond runs at %d bit/s, want %d", got, first)
		}
		r.setAdmin(r.ports[0], 0)
		if got := speed(bonded); got != 0 {
			t.Errorf("without any member the bond runs at %d bit/s", got)
		}
		r.setAdmin(r.ports[0], adminUp)
		r.setAdmin(r.ports[1], adminUp)
		if got := speed(bonded); got != first+second {
			t.Errorf("with its members again the bond runs at %d bit/s, want %d", got, first+second)
		}
	})
}
