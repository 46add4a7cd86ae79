package vppcontract

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/classify"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/policer"
	"go.fd.io/govpp/binapi/vlib"
)

// tableMark is stored in a table as the number of the node for frames that match none of its sessions. VPP
// has no node with that number, so these frames continue (policer_classify_inline in
// vnet/policer/node_funcs.c). The number can therefore identify the owner of the table.
const tableMark = 1<<30 + 4711

// groupBit selects the lowest bit of the first byte of a frame, which is 0 or 1 in every frame.
var groupBit = append([]byte{1}, make([]byte, 15)...)

func newTable() *classify.ClassifyAddDelTable {
	return &classify.ClassifyAddDelTable{
		IsAdd: true, TableIndex: none, Nbuckets: 2, MemorySize: 16 << 10, MatchNVectors: 1, NextTableIndex: none, MissNextIndex: tableMark,
		MaskLen: uint32(len(groupBit)), Mask: groupBit,
	}
}

func (d *device) addTable() uint32 {
	d.Helper()
	return do(d, newTable(), &classify.ClassifyAddDelTableReply{}).NewTableIndex
}

func deleteTable(table uint32) *classify.ClassifyAddDelTable {
	m := newTable()
	m.IsAdd, m.TableIndex = false, table
	return m
}

func (d *device) tables() []uint32 {
	d.Helper()
	return do(d, &classify.ClassifyTableIds{}, &classify.ClassifyTableIdsReply{}).Ids
}

func session(table uint32, group byte, hit uint32) *classify.ClassifyAddDelSession {
	return &classify.ClassifyAddDelSession{
		IsAdd: true, TableIndex: table, HitNextIndex: hit, OpaqueIndex: none, MatchLen: 16, Match: append([]byte{group}, make([]byte, 15)...),
	}
}

// classified creates a table whose sessions lead all frames to a policer.
func (d *device) classified(policer uint32) (table uint32) {
	d.Helper()
	table = d.addTable()
	for group := range byte(2) {
		do(d, session(table, group, policer), &classify.ClassifyAddDelSessionReply{})
	}
	return table
}

// hits returns the policers of the sessions of a table, by the group bit.
func (d *device) hits(table uint32) map[byte]uint32 {
	d.Helper()
	found := map[byte]uint32{}
	for _, s := range dump[*classify.ClassifySessionDetails](d, &classify.ClassifySessionDump{TableID: table}) {
		if s.TableID != table || len(s.Match) != 16 {
			d.Errorf("%+v", s)
		}
		found[s.Match[0]] = s.HitNextIndex
	}
	return found
}

func classifyOn(of index, table uint32, on bool) *classify.PolicerClassifySetInterface {
	return &classify.PolicerClassifySetInterface{SwIfIndex: of, IP4TableIndex: none, IP6TableIndex: none, L2TableIndex: table, IsAdd: on}
}

func (d *device) classify(of index, table uint32, on bool) {
	d.Helper()
	do(d, classifyOn(of, table, on), &classify.PolicerClassifySetInterfaceReply{})
}

// bound returns the L2 tables by which VPP polices, by interface. For all interfaces the dump returns none,
// and for the first index it returns all. For other indices it returns arbitrary memory, so the agent does
// not use these.
func (d *device) bound() map[index]uint32 {
	d.Helper()
	found := map[index]uint32{}
	for _, b := range dump[*classify.PolicerClassifyDetails](d, &classify.PolicerClassifyDump{Type: classify.POLICER_CLASSIFY_API_TABLE_L2}) {
		found[b.SwIfIndex] = b.TableIndex
	}
	if every := dump[*classify.PolicerClassifyDetails](d, &classify.PolicerClassifyDump{
		Type: classify.POLICER_CLASSIFY_API_TABLE_L2, SwIfIndex: anyIndex,
	}); len(every) != 0 {
		d.Errorf("requested all interfaces, and VPP reports %d", len(every))
	}
	return found
}

// works reports whether frames received on an interface pass the L2 classifier.
func (d *device) works(name string) bool {
	d.Helper()
	shown := do(d, &vlib.CliInband{Cmd: "show interface features " + name}, &vlib.CliInbandReply{}).Reply
	_, after, found := strings.Cut(shown, "\nl2-input:\n")
	if !found {
		d.Fatalf("no l2-input: %q", shown)
	}
	features, _, _ := strings.Cut(after, "\n\n")
	return strings.Contains(features, " POLICER_CLAS (l2-policer-classify)\n")
}

func TestAClassifyTableIsReadBackWithItsMark(t *testing.T) {
	both(t, func(d *device) {
		other, table := d.addTable(), d.addTable()
		if got := d.tables(); !slices.Equal(got, []uint32{other, table}) {
			d.Fatalf("tables %v, want %d and %d", got, other, table)
		}
		info := do(d, &classify.ClassifyTableInfo{TableID: table}, &classify.ClassifyTableInfoReply{})
		if info.TableID != table || info.MissNextIndex != tableMark || info.NextTableIndex != none || info.Nbuckets != 2 ||
			info.MatchNVectors != 1 || info.SkipNVectors != 0 || info.ActiveSessions != 0 || !slices.Equal(info.Mask, groupBit) {
			d.Errorf("%+v", info)
		}
		do(d, deleteTable(other), &classify.ClassifyAddDelTableReply{})
		if got := d.tables(); !slices.Equal(got, []uint32{table}) {
			d.Errorf("tables %v, want %d alone", got, table)
		}
		refused(d, deleteTable(other), &classify.ClassifyAddDelTableReply{}, -65)
		refused(d, &classify.ClassifyTableInfo{TableID: other}, &classify.ClassifyTableInfoReply{}, -91)
		if again := d.addTable(); again != other {
			d.Errorf("the next table has the index %d, want the freed %d", again, other)
		}
	})
}

func TestATableWithoutMemoryOrWithATruncatedMaskIsRefused(t *testing.T) {
	both(t, func(d *device) {
		without, short := newTable(), newTable()
		without.MemorySize, short.MaskLen, short.Mask = 0, 8, groupBit[:8]
		refused(d, without, &classify.ClassifyAddDelTableReply{}, -70)
		refused(d, short, &classify.ClassifyAddDelTableReply{}, -7)
	})
}

func TestAddingASessionAgainReplacesItsPolicer(t *testing.T) {
	both(t, func(d *device) {
		table := d.classified(3)
		if got := d.hits(table); len(got) != 2 || got[0] != 3 || got[1] != 3 {
			d.Errorf("sessions %v", got)
		}
		do(d, session(table, 1, 4), &classify.ClassifyAddDelSessionReply{})
		if got := d.hits(table); len(got) != 2 || got[0] != 3 || got[1] != 4 {
			d.Errorf("sessions %v", got)
		}
		gone := session(table, 0, none)
		gone.IsAdd = false
		do(d, gone, &classify.ClassifyAddDelSessionReply{})
		if got := d.hits(table); len(got) != 1 || got[1] != 4 {
			d.Errorf("sessions %v", got)
		}
		refused(d, gone, &classify.ClassifyAddDelSessionReply{}, -6)
		refused(d, session(table+1, 0, 3), &classify.ClassifyAddDelSessionReply{}, -65)
		do(d, deleteTable(table), &classify.ClassifyAddDelTableReply{})
		if got := d.hits(table); len(got) != 0 {
			d.Errorf("sessions of a table that is gone: %v", got)
		}
	})
}

// VPP stores 16 bits of the target of a session.
func TestASessionCannotLeadToAPolicerAbove65535(t *testing.T) {
	both(t, func(d *device) {
		table := d.addTable()
		do(d, session(table, 0, 1<<16+3), &classify.ClassifyAddDelSessionReply{})
		if got := d.hits(table); got[0] != 3 {
			d.Errorf("sessions %v", got)
		}
	})
}

func TestAnInterfaceKeepsItsFirstTable(t *testing.T) {
	both(t, func(d *device) {
		sub := d.subif(d.portUp(), 100)
		first, second := d.classified(0), d.classified(0)
		refused(d, classifyOn(sub, second+1, true), &classify.PolicerClassifySetInterfaceReply{}, -65)
		refused(d, classifyOn(sub+1, first, true), &classify.PolicerClassifySetInterfaceReply{}, -2)
		refused(d, classifyOn(sub, first, false), &classify.PolicerClassifySetInterfaceReply{}, -65)
		d.classify(sub, first, true)
		d.classify(sub, first, true)
		d.classify(sub, second, true) // returns 0 and does nothing
		if got := d.bound(); len(got) != 1 || got[sub] != first {
			d.Errorf("bound %v, want %d to %d", got, sub, first)
		}
		refused(d, classifyOn(sub, second, false), &classify.PolicerClassifySetInterfaceReply{}, -65)
		d.classify(sub, first, false)
		if got := d.bound(); len(got) != 0 {
			d.Errorf("bound %v", got)
		}
	})
}

// The table stays bound by index when the interface leaves L2 or is deleted, but it stops working. The next
// interface with the index has the binding, which does not work. No table can be bound to that interface
// until the old one is unbound.
func TestABindingOutlivesL2AndItsInterfaceAndNoLongerWorks(t *testing.T) {
	both(t, func(d *device) {
		port := d.portUp()
		a, b := d.pair(port)
		name := d.at(a).InterfaceName
		table := d.classified(0)
		d.classify(a, table, true)
		if !d.works(name) {
			d.Error("it does not work")
		}
		d.xconnect(a, d.subif(port, 9))
		if !d.works(name) {
			d.Error("it does not work once it leads elsewhere")
		}
		d.xconnect(a, b)
		do(d, xconnect(a, 0, false), &l2.SwInterfaceSetL2XconnectReply{})
		d.xconnect(a, b)
		if d.bound()[a] != table || d.works(name) {
			d.Errorf("after a time outside L2: bound %v, and it works: %v", d.bound(), d.works(name))
		}
		d.classify(a, table, true)
		if d.works(name) {
			d.Error("it works again although VPP does nothing where a table is bound")
		}
		d.classify(a, table, false)
		d.classify(a, table, true)
		if !d.works(name) {
			d.Error("taken off and put on again it does not work")
		}
		d.deleteSubif(a)
		if d.bound()[a] != table {
			d.Errorf("bound %v once the interface is gone", d.bound())
		}
		refused(d, classifyOn(a, table, false), &classify.PolicerClassifySetInterfaceReply{}, -2)
		if next := d.subif(port, 3); next != a || d.works(d.at(next).InterfaceName) {
			d.Errorf("the next interface is %d, and it works: %v", next, d.works(d.at(next).InterfaceName))
		}
		d.classify(a, table, false)
	})
}

// A bound table can be deleted. VPP then refuses to unbind it, so that no other table can be bound until a
// table has that index again.
func TestATableDeletedWhileBoundCannotBeUnbound(t *testing.T) {
	both(t, func(d *device) {
		sub := d.subif(d.port(), 100)
		table := d.classified(0)
		d.classify(sub, table, true)
		do(d, deleteTable(table), &classify.ClassifyAddDelTableReply{})
		refused(d, classifyOn(sub, table, false), &classify.PolicerClassifySetInterfaceReply{}, -65)
		if d.bound()[sub] != table {
			d.Errorf("bound %v", d.bound())
		}
		if again := d.addTable(); again != table {
			d.Fatalf("the next table is %d", again)
		}
		d.classify(sub, table, false)
	})
}

// A frame is for one destination or, by its group bit, for many; each matches one of the sessions.
func TestFramesBeyondTheRateOfAVLANAreDroppedByTheClassifierAndCounted(t *testing.T) {
	for name, c := range map[string]struct {
		mac     string
		excess  bool
		passing uint64 // frames of the burst
		exceed  uint64
	}{
		"unicast":              {"00:00:00:00:00:02", false, 10, 0},
		"multicast":            {"01:00:5e:00:00:05", false, 10, 0},
		"broadcast, two rates": {"ff:ff:ff:ff:ff:ff", true, 20, 10},
	} {
		t.Run(name, func(t *testing.T) {
			onReal(t, func(d *device) {
				in, out := d.generated()
				client := d.connectStats()
				sub := d.subif(in, 100)
				d.setFlags(sub, up)
				d.xconnect(sub, out)
				d.xconnect(out, sub)
				d.rewrite(sub, pop1)
				config := slow()
				if c.excess {
					config = slowWithExcess()
				}
				begun := time.Now()
				made := do(d, &policer.PolicerAdd{Name: policerName, Infos: config}, &policer.PolicerAddReply{}).PolicerIndex
				table := d.classified(made)
				d.classify(sub, table, true)
				d.sendTo(client, in, "vlan 100", c.mac)
				d.mustHaveDropped(client, made, out, c.passing, c.exceed, begun)
				before := d.combined(client, "/if/tx", uint32(out)).Packets()
				d.classify(sub, table, false)
				do(d, deleteTable(table), &classify.ClassifyAddDelTableReply{})
				do(d, &policer.PolicerDel{PolicerIndex: made}, &policer.PolicerDelReply{})
				d.sendTo(client, in, "vlan 100", c.mac)
				if sent := d.combined(client, "/if/tx", uint32(out)).Packets() - before; sent != frames {
					d.Errorf("taken off, %d of %d frames came out", sent, frames)
				}
			})
		})
	}
}
