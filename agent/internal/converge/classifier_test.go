package converge

import (
	"maps"
	"slices"
	"testing"

	"go.fd.io/govpp/binapi/classify"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/policer"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
)

// byClassifier runs a test on VPPs that police VLANs with classify tables.
func byClassifier(t *testing.T, test func(*testing.T, *router)) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		if r.snapshot().Policing != observe.ClassifierPolicing {
			t.Skip("this VPP polices VLANs otherwise, or not at all")
		}
		test(t, r)
	})
}

const noTable = observe.NoIndex

// bind binds a table to an interface manually, or removes it.
func (r *router) bind(name string, table uint32, on bool) {
	r.t.Helper()
	r.must(&classify.PolicerClassifySetInterface{
		SwIfIndex: r.index(name), IP4TableIndex: noTable, IP6TableIndex: noTable, L2TableIndex: table, IsAdd: on,
	})
}

func (r *router) deleteTable(table uint32) {
	r.t.Helper()
	r.must(&classify.ClassifyAddDelTable{TableIndex: table, MatchNVectors: 1, MaskLen: 16, Mask: observe.GroupBit})
}

// tableByHand creates a table like the agent's, except for its mark.
func (r *router) tableByHand() uint32 {
	r.t.Helper()
	return r.must(&classify.ClassifyAddDelTable{
		IsAdd: true, TableIndex: noTable, Nbuckets: 2, MemorySize: 1 << 14, MatchNVectors: 1, NextTableIndex: noTable, MissNextIndex: noTable,
		MaskLen: 16, Mask: observe.GroupBit,
	}).(*classify.ClassifyAddDelTableReply).NewTableIndex
}

func (r *router) leadTo(table uint32, group byte, to uint32, add bool) {
	r.t.Helper()
	r.must(&classify.ClassifyAddDelSession{
		IsAdd: add, TableIndex: table, HitNextIndex: to, OpaqueIndex: noTable, MatchLen: 16, Match: append([]byte{group}, make([]byte, 15)...),
	})
}

// place identifies the policing of an end.
type place struct {
	name           string // of its access
	table, policer uint32
}

// mustPolice checks that the end's access is bound to its table, that the table leads all frames to its
// policer, and that there are no other tables and policers.
func (r *router) mustPolice(t *testing.T, end intent.End) {
	t.Helper()
	s := r.snapshot()
	access := uint32(r.index(r.accessName(end)))
	table, p := s.Tables[s.Bound[access]], s.Policers[ownership.PolicerName(end.Key)]
	if table == nil || p == nil || table.Hits != [2]uint32{p.Index, p.Index} || table.Mark != ownership.TableMark(end.Key) || !s.Classified[access] {
		t.Fatalf("policer %+v, table %+v, and it works: %v", p, table, s.Classified[access])
	}
	if len(s.Tables) != 1 || len(s.Policers) != 1 {
		t.Errorf("%d tables and %d policers", len(s.Tables), len(s.Policers))
	}
}

func TestManualChangesOfAClassifierAreRepaired(t *testing.T) {
	for why, change := range map[string]func(*router, place){
		"taken off":            func(r *router, p place) { r.bind(p.name, p.table, false) },
		"led elsewhere":        func(r *router, p place) { r.leadTo(p.table, 1, p.policer+9, true) },
		"one session less":     func(r *router, p place) { r.leadTo(p.table, 0, p.policer, false) },
		"a while outside L2":   leaveAndJoin,
		"without its policer":  func(r *router, p place) { r.must(&policer.PolicerDel{PolicerIndex: p.policer}) },
		"without its table":    func(r *router, p place) { r.bind(p.name, p.table, false); r.deleteTable(p.table) },
		"the table from below": func(r *router, p place) { r.deleteTable(p.table) },
		"another rate": func(r *router, p place) {
			r.must(&policer.PolicerUpdate{PolicerIndex: p.policer, Infos: observe.PolicerConfig(intent.Bandwidth{CIR: 1e6, CBS: 9000})})
		},
		"no interface": func(r *router, p place) {
			r.must(&interfaces.DeleteSubif{SwIfIndex: r.index(p.name)})
		},
		"the policer, with another one at its index": func(r *router, p place) {
			r.must(&policer.PolicerDel{PolicerIndex: p.policer})
			r.must(&policer.PolicerAdd{Name: "theirs", Infos: observe.PolicerConfig(profile)})
		},
	} {
		t.Run(why, func(t *testing.T) {
			byClassifier(t, func(t *testing.T, r *router) {
				_, vlan := policedEnds(r)
				r.put([]intent.End{vlan}).mustAllBe(t, "verified")
				r.mustPolice(t, vlan)
				s, name := r.snapshot(), r.accessName(vlan)
				change(r, place{name, s.Bound[uint32(r.index(name))], s.Policers[ownership.PolicerName(vlan.Key)].Index})
				if !r.repair(t.Context()) {
					t.Fatal("nothing was repaired")
				}
				r.mustPolice(t, vlan)
				if r.repair(t.Context()) {
					t.Error("there was something to repair again")
				}
				r.put(nil, tombstone(vlan)).mustAllBe(t, "removed")
				if s := r.snapshot(); len(s.Tables) != 0 || len(s.Policers) != 0 || len(s.Bound) != 0 {
					t.Errorf("left behind: %v, %v, bound %v", s.Tables, s.Policers, s.Bound)
				}
			})
		})
	}
}

// leaveAndJoin removes the access from its cross-connect and puts it back: VPP keeps the table bound but no
// longer polices.
func leaveAndJoin(r *router, _ place) {
	s := r.snapshot()
	for from, to := range s.Connects {
		if s.ByIndex(from).IsSub() {
			at, tunnel := interface_types.InterfaceIndex(from), interface_types.InterfaceIndex(to)
			r.must(&l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: at, TxSwIfIndex: tunnel})
			r.must(&l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: at, TxSwIfIndex: tunnel, Enable: true})
			r.must(&l2.L2InterfaceVlanTagRewrite{SwIfIndex: at, VtrOp: 3})
			r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: at, Flags: interface_types.IF_STATUS_API_FLAG_ADMIN_UP})
		}
	}
}

func TestForeignTableIsAConflictAndNotChanged(t *testing.T) {
	byClassifier(t, func(t *testing.T, r *router) {
		_, vlan := policedEnds(r)
		without := vlan
		without.Bandwidth = intent.Bandwidth{}
		r.put([]intent.End{without}).mustAllBe(t, "verified")
		theirs := r.tableByHand()
		r.bind(r.accessName(vlan), theirs, true)
		vlan.Revision++
		outcome := r.put([]intent.End{vlan})
		if e := outcome.of(t, vlan.Key); e.Status != "conflict" || e.Reason.Code != "port_in_use" || e.Policed || e.Reason.Object == "" {
			t.Errorf("got %+v %+v", e, e.Reason)
		}
		if s := r.snapshot(); s.Bound[uint32(r.index(r.accessName(vlan)))] != theirs || !s.OtherTables[theirs] {
			t.Errorf("bound %v, their tables %v", s.Bound, s.OtherTables)
		}
		r.bind(r.accessName(vlan), theirs, false)
		vlan.Revision++
		r.put([]intent.End{vlan}).mustAllBe(t, "verified")
		r.mustPolice(t, vlan)
		r.put(nil, tombstone(vlan)).mustAllBe(t, "removed")
		if s := r.snapshot(); !s.OtherTables[theirs] {
			t.Error("their table is gone")
		}
	})
}

// TestNewAccessWithAForeignTableIsAConflict: VPP keeps tables bound by index when an interface is deleted,
// and replies with success when it is given another one.
func TestNewAccessWithAForeignTableIsAConflict(t *testing.T) {
	byClassifier(t, func(t *testing.T, r *router) {
		_, vlan := policedEnds(r)
		r.subByHand(r.ports[3], 900, 900)
		theirs := r.tableByHand()
		r.bind(r.ports[3]+".900", theirs, true)
		r.must(&interfaces.DeleteSubif{SwIfIndex: r.index(r.ports[3] + ".900")})
		vlan.Tunnel, vlan.Access.Outer = intent.Tunnel{Encapsulation: intent.L2XC}, 101
		far := vlan
		far.End, far.Access.Interface, far.Bandwidth = "z", r.ports[1], intent.Bandwidth{}
		outcome := r.put([]intent.End{vlan, far})
		if e := outcome.of(t, vlan.Key); e.Status != "conflict" || e.Reason.Code != "port_in_use" || e.Policed {
			t.Errorf("got %+v %+v", e, e.Reason)
		}
		r.put(nil, tombstone(vlan), tombstone(far)).mustAllBe(t, "removed")
		if s := r.snapshot(); !s.OtherTables[theirs] || len(s.Tables) != 0 || !slices.Contains(slices.Collect(maps.Values(s.Bound)), theirs) {
			t.Errorf("their tables %v, the agent's %v, bound %v", s.OtherTables, s.Tables, s.Bound)
		}
	})
}

func TestVLANIsPolicedAgainAfterARestartOfVPP(t *testing.T) {
	byClassifier(t, func(t *testing.T, r *router) {
		_, vlan := policedEnds(r)
		r.put([]intent.End{vlan}).mustAllBe(t, "verified")
		r.restartVPP()
		r.Converge(t.Context())
		r.mustPolice(t, vlan)
	})
}
