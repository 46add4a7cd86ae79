package plan

import (
	"fmt"
	"maps"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/classify"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
)

// Before VPP 26.06, the frames of sub-interfaces, bonds and ports of the device API bypass VPP's policer
// node. The agent polices these frames with a classify table that is bound to the interface. Every frame
// matches a session of the table, and each session leads to a policer.
//
// A table has no name, but it has a mark (ownership.TableMark). VPP stores a binding by interface index. VPP
// keeps the binding when the interface leaves L2 or is deleted, but the binding no longer works. If a table
// is already bound to an interface, VPP ignores a request for another binding and still reports success
// (vnet/classify/policer_classify.c). The agent therefore binds a table only to an interface without a bound
// table. It removes the binding before the interface leaves L2, before the interface is deleted, and before
// the table is deleted.

// Table is an existing classify table, or a table that the plan creates for an access. In the second case,
// Index is observe.NoIndex.
type Table struct {
	Index uint32
	Mark  uint32
	For   string // the name of the access for which the plan creates the table; "" for an existing table
}

func (t Table) String() string {
	if t.Index == observe.NoIndex {
		return "<new for " + t.For + ">"
	}
	return fmt.Sprint(t.Index)
}

func tableAt(t *observe.ClassifyTable) Table { return Table{Index: t.Index, Mark: t.Mark} }

type (
	// AddTable creates a classify table for an access.
	AddTable struct {
		Mark   uint32
		Access Ref
	}
	// SetSession sends one group of frames to a policer: multicast and broadcast frames if Many is set,
	// otherwise unicast frames. Index is the policer's index, or observe.NoIndex if the plan creates the
	// policer.
	SetSession struct {
		Table   Table
		Many    bool
		Policer string
		Index   uint32
		Access  Ref
	}
	// SetClassifier binds a table to an interface, or removes the binding.
	SetClassifier struct {
		Table     Table
		Interface Ref
		On        bool
	}
	// DeleteTable deletes a table that is bound to nothing.
	DeleteTable struct{ Table Table }
)

func (a AddTable) Target() Ref      { return a.Access }
func (a SetSession) Target() Ref    { return a.Access }
func (a SetClassifier) Target() Ref { return a.Interface }
func (a DeleteTable) Target() Ref   { return tableRef(a.Table) }

// tableRef returns a Ref with a name for the table. The Ref has no index, because a table is not an
// interface.
func tableRef(t Table) Ref {
	return Ref{Index: observe.NoIndex, Name: "classify table " + t.String()}
}

// tableMemory is the size of the heap of a classify table (bytes of address space). VPP's default of 2 MB is
// meant for many sessions.
const tableMemory = 16 << 10

// Encode uses observe.NoIndex for "not used". Go's zero value would mean node drop or table 0.
func (a AddTable) Encode(Created) api.Message {
	return &classify.ClassifyAddDelTable{
		IsAdd: true, TableIndex: observe.NoIndex, Nbuckets: observe.TableBuckets, MemorySize: tableMemory, MatchNVectors: 1,
		NextTableIndex: observe.NoIndex, MissNextIndex: a.Mark, MaskLen: uint32(len(observe.GroupBit)), Mask: observe.GroupBit,
	}
}

func (a AddTable) CLI() string {
	return fmt.Sprintf("classify table mask hex %x buckets %d memory-size 1M miss-next %d", observe.GroupBit, observe.TableBuckets, a.Mark)
}

func (a SetSession) Encode(c Created) api.Message {
	return &classify.ClassifyAddDelSession{
		IsAdd: true, TableIndex: existing(a.Table.Index, c.Table), HitNextIndex: existing(a.Index, c.Policer), OpaqueIndex: observe.NoIndex,
		MatchLen: uint32(len(observe.GroupBit)), Match: a.Match(),
	}
}

// existing returns the index of an object that existed before the plan, or of the object that the plan created.
func existing(planned, created uint32) uint32 {
	if planned == observe.NoIndex {
		return created
	}
	return planned
}

func (a SetSession) CLI() string {
	return fmt.Sprintf("classify session policer-hit-next %s table-index %s match hex %x", a.Policer, a.Table, a.Match())
}

func (a SetClassifier) Encode(c Created) api.Message {
	return &classify.PolicerClassifySetInterface{
		SwIfIndex: c.at(a.Interface), IP4TableIndex: observe.NoIndex, IP6TableIndex: observe.NoIndex,
		L2TableIndex: existing(a.Table.Index, c.Table), IsAdd: a.On,
	}
}

func (a SetClassifier) CLI() string {
	line := fmt.Sprintf("set policer classify interface %s l2-table %s", a.Interface.Name, a.Table)
	if !a.On {
		line += " del"
	}
	return line
}

func (a DeleteTable) Encode(Created) api.Message {
	return &classify.ClassifyAddDelTable{
		TableIndex: a.Table.Index, MatchNVectors: 1, NextTableIndex: observe.NoIndex, MissNextIndex: observe.NoIndex,
		MaskLen: uint32(len(observe.GroupBit)), Mask: observe.GroupBit,
	}
}

func (a DeleteTable) CLI() string { return fmt.Sprintf("classify table del table %s", a.Table) }

// Match returns the match key of the session.
func (a SetSession) Match() []byte {
	match := make([]byte, len(observe.GroupBit))
	if a.Many {
		copy(match, observe.GroupBit)
	}
	return match
}

// mostHit is the highest index of a policer that a session can lead to, because VPP stores 16 bits of the
// index.
const mostHit = 1<<16 - 1

// Leads reports whether VPP can lead the session to its policer.
func (a SetSession) Leads(c Created) bool { return existing(a.Index, c.Policer) <= mostHit }

// findTables builds two indexes: the classify tables by mark, and the interfaces by the table that is bound
// to them.
func (o *ownerView) findTables() {
	o.tablesByMark, o.boundTo = make(map[uint32][]*observe.ClassifyTable, len(o.Tables)), make(map[uint32][]uint32, len(o.Bound))
	for _, index := range slices.Sorted(maps.Keys(o.Tables)) {
		t := o.Tables[index]
		o.tablesByMark[t.Mark] = append(o.tablesByMark[t.Mark], t)
	}
	for _, index := range slices.Sorted(maps.Keys(o.Bound)) {
		o.boundTo[o.Bound[index]] = append(o.boundTo[o.Bound[index]], index)
	}
}

// byClassifier reports whether the end's access is policed by a classify table.
func (d *differ) byClassifier(end intent.End) bool {
	if d.Policing != observe.ClassifierPolicing {
		return false
	}
	port := d.ByName(end.Access.Interface)
	return end.Access.Tagging != intent.Untagged || port != nil && !d.NodePolices(port)
}

// classifierConflict returns a conflict if another table is bound to the access. VPP binds only one table to
// an interface, and reports no error for the binding of a second table.
func (d *differ) classifierConflict(end intent.End, access *observe.Interface) *Reason {
	if access == nil || !d.byClassifier(end) || end.Bandwidth == (intent.Bandwidth{}) {
		return nil
	}
	if table, bound := d.Bound[access.Index]; bound && d.OtherTables[table] {
		return conflict("port_in_use", Describe(access), "the classify table %d, which the agent did not make, is bound to %s: "+
			"another user polices received frames with it, or did so on an earlier interface with this index", table, access.Name)
	}
	return nil
}

// setClassifier adds the operations that bring the end's classify table to its intended state: all frames
// reach the end's policer, and the table is bound to the access. policer is nil if the plan creates the
// policer.
func (b *operationBuilder) setClassifier(end intent.End, access Ref, policer *observe.Policer) {
	table, to := Table{observe.NoIndex, ownership.TableMark(end.Key), access.Name}, observe.NoIndex
	hits := [2]uint32{observe.NoIndex, observe.NoIndex}
	if existing := b.tableFor(end.Key, access.Index); existing != nil {
		table, hits = tableAt(existing), existing.Hits
	} else {
		b.add(end.Key, Create, 3, AddTable{table.Mark, access},
			Drift{Field: "classify table", Desired: "true", Actual: "false"}, "the classify table is missing")
	}
	if policer != nil {
		to = policer.Index
	}
	name := ownership.PolicerName(end.Key)
	for group, hit := range hits {
		if to == observe.NoIndex || hit != to {
			b.add(end.Key, Set, 2, SetSession{table, group == 1, name, to, access},
				Drift{Field: "classify session", Desired: name, Actual: policerAt(hit)}, "all frames have to reach the policer")
		}
	}
	b.removeTables(end.Key, table.Index, "another one leads to the policer")
	if end.Testing { // an end under test carries no customer frames, and a table works only in L2
		if i := b.ByIndex(access.Index); i != nil {
			b.takeTableOff(end.Key, i, "the access is apart from its tunnel while that is tested")
		}
		return
	}
	bound, isBound := b.Bound[access.Index]
	// If VPP does not report whether the table works, assume that it has worked since it was bound.
	works := b.Classified[access.Index] || b.ClassifiedUnknown[access.Index]
	on := isBound && bound == table.Index && works && !b.leftL2(access.Index)
	if isBound && !on {
		b.takeTableOff(end.Key, b.ByIndex(access.Index), "the bound classify table does not work, or is another one")
	}
	if !on || b.unbound[access.Index] {
		b.add(end.Key, Police, 0, SetClassifier{table, access, true},
			Drift{Field: "policed", Desired: "true", Actual: "false"}, "the customer's frames are limited to the profile")
	}
}

func policerAt(index uint32) string {
	if index == observe.NoIndex {
		return ""
	}
	return fmt.Sprintf("the policer at %d", index)
}

// tableFor returns the end's table. This is the table that is bound to the end's access, or otherwise a table
// that no other interface of the agent uses.
func (b *operationBuilder) tableFor(end intent.Key, access uint32) *observe.ClassifyTable {
	if t := b.BoundTable(access); t != nil && t.Mark == ownership.TableMark(end) {
		return t
	}
	for _, t := range b.tablesOf(end) {
		return t
	}
	return nil
}

// tablesOf returns the tables that have the end's mark and do not serve another end, sorted by index.
func (d *differ) tablesOf(end intent.Key) (tables []*observe.ClassifyTable) {
	for _, t := range d.tablesByMark[ownership.TableMark(end)] {
		if !slices.ContainsFunc(d.boundTo[t.Index], func(i uint32) bool {
			h := d.byIndex[i]
			return h != nil && h.End != end && ownership.TableMark(h.End) == t.Mark
		}) {
			tables = append(tables, t)
		}
	}
	return tables
}

// takeTableOff removes the binding of a table of the agent from an interface.
func (b *operationBuilder) takeTableOff(end intent.Key, i *observe.Interface, why string) {
	t := b.BoundTable(i.Index)
	if t == nil || b.unbound[i.Index] {
		return
	}
	b.unbound[i.Index] = true
	b.add(end, Detach, -1, SetClassifier{tableAt(t), RefTo(i), false},
		Drift{Field: "policed", Desired: "false", Actual: "true"}, "%s", why)
}

// removeTables unbinds and deletes the end's tables, except the table with the given index. It keeps a table
// that is bound to an index without an interface, because VPP could never unbind that table afterwards.
func (b *operationBuilder) removeTables(end intent.Key, but uint32, why string) {
	if len(b.Tables) == 0 {
		return
	}
	for _, t := range b.tablesOf(end) {
		if t.Index == but {
			continue
		}
		free := true
		for _, index := range b.boundTo[t.Index] {
			if i := b.ByIndex(index); i != nil {
				b.takeTableOff(end, i, why)
			} else {
				free = false
			}
		}
		if free {
			b.add(end, Delete, 1, DeleteTable{tableAt(t)}, Drift{Field: "classify table", Desired: "", Actual: "true"}, "%s", why)
		}
	}
}
