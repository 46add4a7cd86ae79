package plan

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
)

func TestAnEmptyRouterGetsAllOperationsOfAVLLInOrder(t *testing.T) {
	m := newModel(t)
	e := end(1)
	tag := tagOf(e)
	wanted := []string{
		"create: create vxlan tunnel src 10.255.0.1 dst 10.255.0.2 vni 1001",
		"create: create sub-interfaces cust0 101 dot1q 101 exact-match",
		"tag: set interface tag cust0.101 " + tag,
		"tag: set interface tag vxlan_tunnel<new> " + tag,
		"set: set interface l2 tag-rewrite cust0.101 pop 1",
		"connect: set interface l2 xconnect cust0.101 vxlan_tunnel<new>",
		"connect: set interface l2 xconnect vxlan_tunnel<new> cust0.101",
		"up: set interface state cust0.101 up",
	}
	if got := lines(m.diff(want(e)).Ops); !slices.Equal(got, wanted) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(wanted, "\n"))
	}
}

func TestAChangeWithTheSameKeysIsAppliedInPlace(t *testing.T) {
	for name, c := range map[string]struct {
		before, after func(*intent.End)
		wanted        []string
	}{
		"revision":  {func(*intent.End) {}, func(e *intent.End) { e.Revision = 2 }, []string{"tag", "tag"}},
		"down":      {func(*intent.End) {}, func(e *intent.End) { e.AdminUp = false }, []string{"up"}},
		"up again":  {func(e *intent.End) { e.AdminUp = false }, func(e *intent.End) { e.AdminUp = true }, []string{"up"}},
		"frame":     {func(*intent.End) {}, func(e *intent.End) { e.Frame = 9018 }, nil},
		"GRE frame": {gre, func(e *intent.End) { e.Frame = 9018 }, []string{"set"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t)
			m.carryOut(m.diff(want(end(1, c.before))).Ops)
			var stages []string
			for _, op := range m.diff(want(end(1, c.before, c.after))).Ops {
				stages = append(stages, op.Stage.String())
			}
			if !slices.Equal(stages, c.wanted) {
				t.Errorf("got %v, want %v", stages, c.wanted)
			}
		})
	}
}

func gre(e *intent.End) {
	e.Tunnel = intent.Tunnel{Encapsulation: intent.GRE, Local: local4, Remote: remote4}
}

func greKey(e *intent.End) { e.Tunnel.GREKey = 100 }

func TestAChangedKeyRecreatesOnlyItsOwnObject(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*intent.End)
		deletes string
	}{
		"VLAN":          {func(e *intent.End) { e.Access.Outer = 200 }, "delete_subif"},
		"exact match":   {func(e *intent.End) { e.Access.Exact = false }, "delete_subif"},
		"port":          {func(e *intent.End) { e.Access.Interface = "cust1" }, "delete_subif"},
		"VNI":           {func(e *intent.End) { e.Tunnel.VNI = 7 }, "vxlan_add_del_tunnel_v3"},
		"encapsulation": {func(e *intent.End) { e.Tunnel.Encapsulation = intent.GENEVE }, "vxlan_add_del_tunnel_v3"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t)
			m.carryOut(m.diff(want(end(1))).Ops)
			p := m.diff(want(end(1, c.change)))
			var deletes []string
			for _, op := range p.Ops {
				if op.Stage == Delete {
					deletes = append(deletes, op.Message())
				}
			}
			if !slices.Equal(deletes, []string{c.deletes}) {
				t.Errorf("deletes %v", deletes)
			}
			m.carryOut(p.Ops)
			if left := m.diff(want(end(1, c.change))).Ops; len(left) != 0 {
				t.Errorf("left to do: %v", lines(left))
			}
		})
	}
}

func TestTwoEndsCanSwapTheirVLANs(t *testing.T) {
	m := newModel(t)
	m.carryOut(m.diff(want(end(1), end(2))).Ops)
	swapped := want(
		end(1, func(e *intent.End) { e.Access.Outer = 102 }),
		end(2, func(e *intent.End) { e.Access.Outer = 101 }))
	m.carryOut(m.diff(swapped).Ops)
	if left := m.diff(swapped); len(left.Ops) != 0 || len(left.Blocked) != 0 {
		t.Errorf("left to do: %v, blocked: %v", lines(left.Ops), left.Blocked)
	}
}

func TestConflictsAreNamedAndNothingIsChanged(t *testing.T) {
	vlan101 := intent.Access{Tagging: intent.Dot1q, Outer: 101, Exact: true}
	for name, c := range map[string]struct {
		disturb      func(*model)
		end          intent.End
		status, code string
		object       string
	}{
		"a foreign sub-interface with another ID": {
			func(m *model) { m.sub("cust0", 7, vlan101, "") }, end(1), "conflict", "foreign_subinterface", "cust0.7 (sw_if_index 5)"},
		"not exact-match makes no difference to VPP": {
			func(m *model) { m.sub("cust0", 7, intent.Access{Tagging: intent.Dot1q, Outer: 101}, "") },
			end(1), "conflict", "foreign_subinterface", "cust0.7 (sw_if_index 5)"},
		"a quarantined end's sub-interface": {
			func(m *model) { m.sub("cust0", 101, vlan101, tagOf(end(9))) }, end(1), "conflict", "foreign_subinterface", "cust0.101 (sw_if_index 5)"},
		"a foreign tunnel": {
			func(m *model) { m.tunnel(end(1).Tunnel, "") }, end(1), "conflict", "foreign_tunnel", "vxlan_tunnel5 (sw_if_index 5)"},
		"a VXLAN tunnel over IPv6 from another address": {
			func(m *model) {
				m.tunnel(intent.Tunnel{Encapsulation: intent.VXLAN, Local: netip.MustParseAddr("fd00::9"), Remote: remote6, VNI: 1001}, "")
			},
			end(1, func(e *intent.End) { e.Tunnel.Local, e.Tunnel.Remote = local6, remote6 }), "conflict", "foreign_tunnel", "vxlan_tunnel5 (sw_if_index 5)"},
		"the port is in a bridge": {
			func(m *model) { m.s.Bridged[m.port("cust0").Index] = 5 }, end(1), "conflict", "port_in_use", "cust0 (sw_if_index 1)"},
		"the port is cross-connected": {
			func(m *model) { m.s.Connects[m.port("cust0").Index] = m.port("cust1").Index }, end(1), "conflict", "port_in_use", "cust0 (sw_if_index 1)"},
		"a whole port with an address": {
			func(m *model) { m.port("cust1").Addresses = []netip.Prefix{netip.MustParsePrefix("10.9.0.1/24")} },
			end(1, wholePort("cust1")), "conflict", "port_in_use", "cust1 (sw_if_index 2)"},
		"a whole port with a Linux pair": {
			func(m *model) { m.s.LCP[m.port("cust1").Index] = "e1" }, end(1, wholePort("cust1")), "conflict", "port_in_use", "cust1 (sw_if_index 2)"},
		"a whole port with a sub-interface": {
			func(m *model) { m.sub("cust1", 5, vlan101, "") }, end(1, wholePort("cust1")), "conflict", "port_in_use", "cust1.5 (sw_if_index 5)"},
		"a whole port of another VLL": {
			func(m *model) { m.port("cust1").Tag = tagOf(end(9)) }, end(1, wholePort("cust1")), "conflict", "port_in_use", "cust1 (sw_if_index 2)"},
		"no such port": {
			func(*model) {}, end(1, func(e *intent.End) { e.Access.Interface = "cust9" }), "pending", "unknown_interface", "cust9"},
		"a sub-interface instead of a port": {
			func(m *model) { m.sub("cust1", 5, vlan101, "") },
			end(1, func(e *intent.End) { e.Access.Interface = "cust1.5" }), "pending", "unknown_interface", "cust1.5 (sw_if_index 5)"},
		"no such local address": {
			func(*model) {}, end(1, func(e *intent.End) { e.Tunnel.Local = netip.MustParseAddr("10.255.0.9") }), "pending", "local_address_missing", "10.255.0.9"},
		"no such messages": {
			func(m *model) { m.s.Supported[observe.Capability(intent.VXLAN)] = false }, end(1), "failed", "unsupported", ""},
		"no GRE keys, where GRE itself is there": {
			func(m *model) { m.s.Supported[observe.CanGREKeys] = false }, end(1, gre, greKey), "failed", "unsupported", ""},
		"a GRE tunnel with the same key": {
			func(m *model) {
				m.tunnel(intent.Tunnel{Encapsulation: intent.GRE, Local: local4, Remote: remote4, GREKey: 100}, "")
			}, end(1, gre, greKey), "conflict", "foreign_tunnel", "gre_tunnel5 (sw_if_index 5)"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t)
			c.disturb(m)
			bystander := end(2, func(e *intent.End) { e.Access.Interface = "cust3"; gre(e) })
			p := m.diff(want(c.end, bystander))
			r := p.Blocked[c.end.Key]
			if r == nil || r.Status != c.status || r.Code != c.code || r.Object != c.object || r.Message == "" {
				t.Errorf("got %+v", r)
			}
			for _, op := range p.Ops {
				if op.End == c.end.Key {
					t.Errorf("does %s all the same", op.Action.CLI())
				}
			}
			m.carryOut(p.Ops)
			if left := m.diff(want(c.end, bystander)); len(left.Ops) != 0 || left.Blocked[bystander.Key] != nil {
				t.Errorf("the bystander is not done: %v %+v", lines(left.Ops), left.Blocked[bystander.Key])
			}
		})
	}
}

func TestAForeignTunnelInAnotherTableIsNoConflict(t *testing.T) {
	m := newModel(t)
	m.tunnel(end(1).Tunnel, "")
	m.s.Tunnels[0].Default = false
	if blocked := m.diff(want(end(1))).Blocked; len(blocked) != 0 {
		t.Errorf("blocked: %+v", blocked[end(1).Key])
	}
}

func TestAnEndThatCannotMoveKeepsItsKeyWhichBlocksOthers(t *testing.T) {
	m := newModel(t)
	m.carryOut(m.diff(want(end(1))).Ops)
	m.sub("cust0", 7, intent.Access{Tagging: intent.Dot1q, Outer: 200, Exact: true}, "")
	mover := end(1, func(e *intent.End) { e.Access.Outer = 200 })
	follower := end(2, func(e *intent.End) { e.Access.Outer = 101 })
	p := m.diff(want(mover, follower))
	if len(p.Ops) != 0 {
		t.Errorf("does %v", lines(p.Ops))
	}
	for _, e := range []intent.End{mover, follower} {
		if r := p.Blocked[e.Key]; r == nil || r.Code != "foreign_subinterface" {
			t.Errorf("%s: %+v", e.Key, r)
		}
	}
}

func TestOwnedInterfacesThatTheIntentDoesNotNameAreQuarantinedUnchanged(t *testing.T) {
	m := newModel(t)
	m.carryOut(m.diff(want(end(1), end(2))).Ops)
	p := m.diff(want(end(1)))
	if len(p.Ops) != 0 || len(p.Quarantined) != 2 {
		t.Errorf("does %v, quarantines %d interfaces, want 2", lines(p.Ops), len(p.Quarantined))
	}
	empty := m.diff(want())
	if len(empty.Ops) != 0 || len(empty.Quarantined) != 4 {
		t.Errorf("an empty document does %v, quarantines %d, want 4", lines(empty.Ops), len(empty.Quarantined))
	}
}

func TestARemovalDeletesEverythingAndReleasesThePort(t *testing.T) {
	for name, e := range map[string]intent.End{"VLAN": end(1), "whole port": end(1, wholePort("cust1"))} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t)
			before := m.picture(everything)
			m.carryOut(m.diff(want(e)).Ops)
			m.carryOut(m.diff(m.without(e)).Ops)
			mustEqual(t, m.picture(everything), before)
		})
	}
}

func TestAnInterfaceWithAForeignSenderIsRemovedAndTheForeignCrossConnectStays(t *testing.T) {
	for name, e := range map[string]intent.End{"VLAN": end(1), "whole port": end(1, wholePort("cust1"))} {
		for _, side := range []Role{Access, Tunnel} {
			t.Run(fmt.Sprintf("%s, into the %s", name, side), func(t *testing.T) {
				m := newModel(t)
				m.carryOut(m.diff(want(e)).Ops)
				theirs, into := m.port("cust2").Index, m.s.Tunnels[0].Index
				if side == Access {
					into = m.s.Connects[into]
				}
				m.s.Connects[theirs] = into
				p := m.diff(m.without(e))
				if r := p.Blocked[e.Key]; r != nil || p.SentInto != nil {
					t.Errorf("blocked by %+v; nothing is made, and %v is not to be used", r, p.SentInto)
				}
				m.carryOut(p.Ops)
				if left := m.diff(m.without(e)); len(left.Owned) != 0 || len(left.Ops) != 0 {
					t.Errorf("left: %v, to do: %v", left.Owned, lines(left.Ops))
				}
				if m.s.Connects[theirs] != into {
					t.Errorf("theirs sends into %d and not into %d", m.s.Connects[theirs], into)
				}
			})
		}
	}
}

func TestAnInterfaceWithAForeignSenderKeepsItsKeyWhileItsLineExists(t *testing.T) {
	m := newModel(t)
	m.carryOut(m.diff(want(end(1))).Ops)
	m.s.Connects[m.port("cust2").Index] = m.s.Tunnels[0].Index
	p := m.diff(want(end(1, func(e *intent.End) { e.Tunnel.VNI = 7 })))
	if r := p.Blocked[end(1).Key]; r == nil || r.Code != "foreign_xconnect" || len(p.Ops) != 0 {
		t.Errorf("does %v, blocked by %+v", lines(p.Ops), r)
	}
}

func TestDeletedIndicesWithAForeignSenderAreReported(t *testing.T) {
	m := newModel(t)
	m.carryOut(m.diff(want(end(1))).Ops)
	gone, theirs := m.s.Tunnels[0].Index, m.port("cust2")
	m.s.Connects[theirs.Index], m.s.Connects[m.port("cust3").Index] = gone, m.port("cust2").Index
	in := m.without(end(1))
	in.Present = []intent.End{end(2)}
	for at, s := range []string{"with the removal", "after it"} {
		p := m.diff(in)
		if r := p.SentInto[gone]; r == nil || r.Code != "foreign_xconnect" || r.Object != Describe(theirs) || len(p.SentInto) != 1 {
			t.Errorf("%s: %+v", s, p.SentInto)
		}
		if at == 0 {
			m.carryOut(m.diff(m.without(end(1))).Ops)
		}
	}
}

func TestAPortThatIsDownIsSetUpOnceForASubInterfaceThatNeedsIt(t *testing.T) {
	m := newModel(t)
	m.port("cust0").AdminUp = false
	down := func(e *intent.End) { e.AdminUp = false }
	if got := raises(m.diff(want(end(1, down))).Ops, "cust0"); got != 0 {
		t.Errorf("a VLL that is to be down raises the port %d times", got)
	}
	p := m.diff(want(end(1), end(2)))
	if got := raises(p.Ops, "cust0"); got != 1 {
		t.Errorf("raised %d times", got)
	}
	m.carryOut(p.Ops)
	m.port("cust0").AdminUp = false // an operator takes the port down; the agent must not undo that
	if left := m.diff(want(end(1), end(2))).Ops; len(left) != 0 {
		t.Errorf("undoes the operator's work: %v", lines(left))
	}
}

func TestAPortWithAForeignTagOrAnAddressIsNotSetUp(t *testing.T) {
	for name, mark := range map[string]func(*observe.Interface){
		"a tag":      func(i *observe.Interface) { i.Tag = "shut by the NOC, ticket 7" },
		"an address": func(i *observe.Interface) { i.Addresses = []netip.Prefix{netip.MustParsePrefix("10.9.0.1/24")} },
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t)
			port := m.port("cust0")
			mark(port)
			m.carryOut(m.diff(want(end(1))).Ops)
			port.AdminUp = false
			down := func(e *intent.End) { e.AdminUp = false }
			p := m.diff(want(end(1), end(2), end(3, down)))
			if p.Blocked[end(1).Key] != nil || p.Blocked[end(3).Key] != nil {
				t.Errorf("what need not come up is blocked: %v", p.Blocked)
			}
			if r := p.Blocked[end(2).Key]; r == nil || r.Status != "pending" || r.Code != "port_down" || r.Object != Describe(port) {
				t.Errorf("blocked by %+v", r)
			}
			m.carryOut(p.Ops)
			port.AdminUp = true
			if left := m.diff(want(end(1), end(2), end(3, down))); len(left.Blocked) != 0 || len(left.Ops) == 0 {
				t.Errorf("once it is up: blocked %v, does %v", left.Blocked, lines(left.Ops))
			}
		})
	}
}

func TestAPortShutByItsLineComesUpAgainIfItWasUpBefore(t *testing.T) {
	down := func(e *intent.End) { e.AdminUp = false }
	line, next := end(1, wholePort("cust1"), down), end(2, wholePort("cust1"), down)
	vlan := end(3, func(e *intent.End) { e.Access.Interface = "cust1" })
	for name, c := range map[string]struct {
		found   bool
		present []intent.End
		up      bool
	}{
		"found up":                     {found: true, up: true},
		"found down":                   {found: false, up: false},
		"found up, and a VLAN follows": {found: true, present: []intent.End{vlan}, up: true},
		"found up, and another line has it down next": {found: true, present: []intent.End{next}, up: false},
	} {
		for _, tag := range []string{"", "rack 3"} {
			t.Run(fmt.Sprintf("%s, tag %q", name, tag), func(t *testing.T) {
				m := newModel(t)
				port, journal := m.port("cust1"), ownership.Journal{Boot: m.s.Boot}
				port.AdminUp, port.Tag = c.found, tag
				bring := func(in *intent.Intent) {
					t.Helper()
					p := Diff(in, m.s, journal, nil)
					if len(p.Blocked) != 0 {
						t.Errorf("blocked: %+v", p.Blocked)
					}
					m.carryOut(p.Ops)
					journal.Claims = Diff(in, m.s, ownership.Journal{Boot: m.s.Boot, Claims: p.StandingClaims}, nil).StandingClaims
				}
				up := line
				up.AdminUp = true
				for _, e := range []intent.End{up, line} {
					bring(want(e))
				}
				if port.AdminUp {
					t.Fatal("the line is to be down and its port is up")
				}
				in := m.without(line)
				in.Present = c.present
				bring(in)
				if port.AdminUp != c.up {
					t.Errorf("the port is up: %v, want %v", port.AdminUp, c.up)
				}
				if len(c.present) > 0 && c.present[0].Key == next.Key {
					bring(m.without(next)) // the state that the first line found is restored
					if !port.AdminUp {
						t.Error("the port stays down")
					}
				}
			})
		}
	}
}

func raises(ops []Op, port string) (n int) {
	for _, op := range ops {
		if a, ok := op.Action.(SetAdmin); ok && a.Interface.Name == port && a.Up {
			n++
		}
	}
	return n
}

func TestAnOrphanOfACrashIsRecognizedByItsClaimOnlyInThatRunOfVPP(t *testing.T) {
	for name, c := range map[string]struct {
		boot    ownership.Boot
		blocked bool
	}{
		"same run":    {ownership.Boot{PID: 1, MS: 1000}, false},
		"another run": {ownership.Boot{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t)
			p := m.diff(want(end(1)))
			m.tunnel(end(1).Tunnel, "")
			m.sub("cust0", 101, end(1).Access, "")
			journal := ownership.Journal{Boot: c.boot}
			if !c.blocked {
				journal.Claims = p.CreationClaims
			}
			again := Diff(want(end(1)), m.s, journal, nil)
			if blocked := again.Blocked[end(1).Key] != nil; blocked != c.blocked {
				t.Fatalf("blocked: %+v", again.Blocked[end(1).Key])
			}
			for _, op := range again.Ops {
				if op.Stage == Create || op.Stage == Delete {
					t.Errorf("does %s", op.Action.CLI())
				}
			}
			m.carryOut(again.Ops)
		})
	}
}

func TestAPortWithADescriptionIsClaimedAndKeepsItsTag(t *testing.T) {
	m := newModel(t)
	m.port("cust1").Tag = "rack 3, blue cable"
	before := m.picture(everything)
	e := end(1, wholePort("cust1"))
	p := m.diff(want(e))
	if len(p.StandingClaims) != 1 || p.StandingClaims[0].Port != "cust1" {
		t.Fatalf("claims %+v", p.StandingClaims)
	}
	m.carryOut(p.Ops)
	if got := m.port("cust1").Tag; got != "rack 3, blue cable" {
		t.Errorf("the tag became %q", got)
	}
	journal := ownership.Journal{Boot: m.s.Boot, Claims: p.StandingClaims}
	if left := Diff(want(e), m.s, journal, nil); len(left.Ops) != 0 || len(left.Owned) != 2 {
		t.Errorf("left to do: %v, owned: %d", lines(left.Ops), len(left.Owned))
	}
	m.carryOut(Diff(m.without(e), m.s, journal, nil).Ops)
	mustEqual(t, m.picture(everything), before)
	if left := Diff(m.without(e), m.s, journal, nil); len(left.StandingClaims) != 0 {
		t.Errorf("still claimed: %+v", left.StandingClaims)
	}
}

func TestAPortWithADescriptionMayBecomeTheOtherEndOfItsLine(t *testing.T) {
	m := newModel(t)
	m.port("cust1").Tag = "rack 3, blue cable"
	p := m.diff(want(end(1, wholePort("cust1"))))
	m.carryOut(p.Ops)
	journal := ownership.Journal{Boot: m.s.Boot, Claims: p.StandingClaims}
	local := func(e *intent.End) { e.Tunnel = intent.Tunnel{Encapsulation: intent.L2XC} }
	turned := want(end(1, local), end(1, wholePort("cust1"), local, func(e *intent.End) { e.End = "z" }))
	p = Diff(turned, m.s, journal, nil)
	m.carryOut(p.Ops)
	journal.Claims = slices.Concat(p.StandingClaims, p.CreationClaims)
	if left := Diff(turned, m.s, journal, nil); len(p.Ops) == 0 || len(left.Ops) != 0 || len(left.Blocked) != 0 {
		t.Errorf("did %v\nleft to do: %v\nblocked: %v", lines(p.Ops), lines(left.Ops), left.Blocked)
	}
}

func TestAConflictBlocksBothEndsOfALocalCrossConnect(t *testing.T) {
	local := func(e *intent.End) { e.Tunnel = intent.Tunnel{Encapsulation: intent.L2XC} }
	a, z := end(1, local), end(1, local, func(e *intent.End) { e.End, e.Access.Interface = "z", "cust9" })
	p := newModel(t).diff(want(a, z))
	if len(p.Ops) != 0 {
		t.Errorf("does %v", lines(p.Ops))
	}
	if r := p.Blocked[a.Key]; r == nil || r.Code != "unknown_interface" || !strings.HasPrefix(r.Message, "the other end: ") {
		t.Errorf("got %+v", r)
	}
}

func TestRewritesAreSetAgainAfterTheAccessHasLeftL2(t *testing.T) {
	m := newModel(t)
	m.carryOut(m.diff(want(end(1))).Ops)
	moved := want(end(1, func(e *intent.End) { e.Tunnel.VNI = 7 }))
	m.carryOut(m.diff(moved).Ops)
	if left := m.diff(moved).Ops; len(left) != 0 {
		t.Errorf("left to do: %v", lines(left))
	}
	if got := m.port("cust0.101").Rewrite; got != PopOne {
		t.Errorf("rewrite is %d", got)
	}
}

func TestAnInterfaceInADumpTwiceIsCountedOnce(t *testing.T) {
	m := newModel(t)
	m.carryOut(m.diff(want(end(1))).Ops)
	m.s.Interfaces = append(m.s.Interfaces, m.s.Interfaces...)
	m.s.Tunnels = append(m.s.Tunnels, m.s.Tunnels...)
	m.s.Index()
	if p := m.diff(want(end(1))); len(p.Ops) != 0 || len(p.Owned) != 2 {
		t.Errorf("does %v, owns %d interfaces", lines(p.Ops), len(p.Owned))
	}
}

// TestAPlanForAFewLinesBlocksTheSameEndsAsAPlanForAll compares both plans.
func TestAPlanForAFewLinesBlocksTheSameEndsAsAPlanForAll(t *testing.T) {
	whole := func(e *intent.End) {
		e.Access = intent.Access{Interface: "cust1", Tagging: intent.Untagged, Exact: true}
	}
	for name, disturb := range map[string]func(*model){
		"nothing happened": func(*model) {},
		"a whole port is gone": func(m *model) {
			m.s.Interfaces = slices.DeleteFunc(m.s.Interfaces, func(i *observe.Interface) bool { return i.Name == "cust1" })
		},
		"it was put into a bridge": func(m *model) { m.s.Bridged[m.port("cust1").Index] = 7 },
		"it got a sub-interface": func(m *model) {
			m.sub("cust1", 9, intent.Access{Tagging: intent.Dot1q, Outer: 9, Exact: true}, "somebody's")
		},
		"a foreign sender into a tunnel": func(m *model) {
			half := m.sub("cust3", 999, intent.Access{Tagging: intent.Dot1q, Outer: 999, Exact: true}, "somebody's")
			m.s.Connects[half.Index] = m.s.Tunnels[0].Index
		},
		"the local address is gone": func(m *model) { m.port("loop0").Addresses = nil },
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t)
			in := want(end(1, whole), end(2), end(3))
			m.carryOut(m.diff(in).Ops)
			clean := m.diff(in)
			if len(clean.Ops) != 0 || len(clean.Blocked) != 0 {
				t.Fatalf("left to do: %v, blocked: %v", lines(clean.Ops), clean.Blocked)
			}
			disturb(m)
			m.s.Index()
			all := m.diff(in).Blocked
			if (name == "nothing happened") != (len(all) == 0) {
				t.Fatalf("a plan for all blocks %v", all)
			}
			few := clean.ReplanFor(map[string]bool{end(3).VLL: true})(in, m.s, ownership.Journal{Boot: m.s.Boot}, nil)
			if !reflect.DeepEqual(few.Blocked, all) {
				t.Errorf("blocks %v, and a plan for all %v", few.Blocked, all)
			}
		})
	}
}

// A sub-interface that looks correct is re-created on request, and nothing else is.
func TestASubInterfaceIsRebuiltWithAllItsSettings(t *testing.T) {
	m := newModel(t)
	in := want(end(1, withProfile), end(2), end(3, wholePort("cust1")))
	m.settle(t, in)
	rebuilt := map[uint32]bool{m.port("cust0.101").Index: true, m.port("cust1").Index: true, m.s.Tunnels[0].Index: true}
	tunnel := m.s.ByIndex(m.s.Connects[m.port("cust0.101").Index]).Name
	policer := "policer input name " + ownership.PolicerName(end(1).Key)
	p := DiffRebuild(rebuilt)(in, m.s, ownership.Journal{Boot: m.s.Boot}, nil)
	wanted := []string{
		"detach: " + policer + " unapply cust0.101",
		"detach: set interface l3 " + tunnel,
		"detach: set interface l3 cust0.101",
		"delete: delete sub-interface cust0.101",
		"create: create sub-interfaces cust0 101 dot1q 101 exact-match",
		"tag: set interface tag cust0.101 " + tagOf(end(1)),
		"set: set interface l2 tag-rewrite cust0.101 pop 1",
		"connect: set interface l2 xconnect cust0.101 " + tunnel,
		"connect: set interface l2 xconnect " + tunnel + " cust0.101",
		"police: " + policer + " cust0.101",
		"up: set interface state cust0.101 up",
	}
	if got := lines(p.Ops); !slices.Equal(got, wanted) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(wanted, "\n"))
	}
	m.carryOut(p.Ops)
	if left := m.diff(in); len(left.Ops) != 0 || len(left.Blocked) != 0 {
		t.Errorf("left to do: %v, blocked: %v", lines(left.Ops), left.Blocked)
	}
}

// TestAPortThatWasShutDownIsUpWhenTheIntentNoLongerRequiresItDown, regardless of other problems of its end.
func TestAPortThatWasShutDownIsUpWhenTheIntentNoLongerRequiresItDown(t *testing.T) {
	noLongerDown := func(_ *model, e intent.End) *intent.Intent {
		e.UNILinkDown = false
		return want(e)
	}
	for name, c := range map[string]struct {
		foundDown bool
		then      func(*model, intent.End) *intent.Intent
		stays     bool
	}{
		"its loopback is down meanwhile": {then: func(m *model, e intent.End) *intent.Intent {
			m.port("loop0").AdminUp = false
			return noLongerDown(m, e)
		}},
		"it moves, and was found down": {foundDown: true, then: func(m *model, e intent.End) *intent.Intent {
			e.Access.Interface = "cust1"
			return want(e)
		}},
		"it is removed, and was found down": {foundDown: true, then: func(m *model, e intent.End) *intent.Intent { return m.without(e) }},
		"it is not named any more":          {then: func(*model, intent.End) *intent.Intent { return want() }},
		"it is suspended, and blocked": {stays: true, then: func(m *model, e intent.End) *intent.Intent {
			m.port("loop0").AdminUp = false
			e.AdminUp = false
			return noLongerDown(m, e)
		}},
		"it is blocked, and still to be down": {stays: true, then: func(m *model, e intent.End) *intent.Intent {
			m.port("loop0").AdminUp = false
			return want(e)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t)
			m.port("cust0").AdminUp = !c.foundDown
			e := end(1, wholePort("cust0"))
			journal := m.keepDown(&e)
			p := Diff(c.then(m, e), m.s, journal, nil)
			m.carryOut(p.Ops)
			if m.port("cust0").AdminUp == c.stays {
				t.Errorf("admin up is %t after %v; blocked %v", c.stays, lines(p.Ops), p.Blocked)
			}
		})
	}
}

// TestAPortThatVPPDidNotSetUpAgainCountsAsShutDown: the next plan sets it up, regardless of changes to its
// line.
func TestAPortThatVPPDidNotSetUpAgainCountsAsShutDown(t *testing.T) {
	m := newModel(t)
	e := end(1, wholePort("cust0"))
	journal := m.keepDown(&e)
	e.UNILinkDown = false
	refused := Diff(want(e), m.s, journal, nil)
	if len(refused.Ops) != 1 || !refused.Ops[0].Follows {
		t.Errorf("only the agent shut the port, and with drift: hold it waits: %+v", refused.Ops)
	}
	journal.Claims = refused.StandingClaims
	released := m.without(e)
	released.Removed[0].Release = true
	m.carryOut(Diff(released, m.s, journal, nil).Ops)
	if !m.port("cust0").AdminUp {
		t.Errorf("released, it stays down; claims %+v", journal.Claims)
	}
	if kept := Diff(want(e), m.s, journal, nil).ShutDown(); len(kept) != 0 {
		t.Errorf("it is up, and shut down are %v", kept)
	}
}

// keepDown builds an end, takes its port down because of the far end's link, and returns the resulting
// journal.
func (m *model) keepDown(e *intent.End) ownership.Journal {
	journal := ownership.Journal{Boot: m.s.Boot}
	for _, e.UNILinkDown = range []bool{false, true} {
		p := Diff(want(*e), m.s, journal, nil)
		m.carryOut(p.Ops)
		journal.Claims = p.StandingClaims
	}
	return journal
}
