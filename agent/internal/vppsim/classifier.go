package vppsim

import (
	"maps"
	"slices"

	"go.fd.io/govpp/binapi/classify"
	"go.fd.io/govpp/binapi/interface_types"
)

// classifiers has VPP's pool of classify tables, and the interfaces that use these tables for policing.
type classifiers struct {
	pool[classifyTable]
	bound map[uint32]uint32 // sw_if_index -> table; an entry remains when its interface is deleted
	works map[uint32]bool   // by sw_if_index: whether the L2 input feature is on; it is lost when the interface leaves L2 or is deleted
}

type classifyTable struct {
	request  classify.ClassifyAddDelTable
	sessions []classify.ClassifySessionDetails
}

const vector = 16 // bytes

// classifyAddDelTable creates or deletes a table. As in VPP, a table can be deleted although an interface
// uses it.
func (v *vpp) classifyAddDelTable(m *classify.ClassifyAddDelTable, reply *classify.ClassifyAddDelTableReply) {
	reply.NewTableIndex, reply.SkipNVectors, reply.MatchNVectors = none, none, none
	switch {
	case uint32(len(m.Mask)) != m.MatchNVectors*vector:
		reply.Retval = retvalInvalidValue
	case !m.IsAdd && v.classifiers.at(m.TableIndex) == nil:
		reply.Retval = retvalNoSuchTable
	case !m.IsAdd:
		v.classifiers.remove(m.TableIndex)
	case m.MemorySize == 0:
		reply.Retval = retvalInvalidMemorySize
	case m.Nbuckets == 0 || m.MatchNVectors < 1 || m.MatchNVectors > 5:
		reply.Retval = retvalInvalidValue
	default:
		reply.NewTableIndex = v.classifiers.add(&classifyTable{request: *m})
		reply.SkipNVectors, reply.MatchNVectors = m.SkipNVectors, m.MatchNVectors
	}
}

// classifyAddDelSession adds, replaces or deletes a session of a table. Only 16 bits of the session's
// target are stored (vnet_classify.h).
func (v *vpp) classifyAddDelSession(m *classify.ClassifyAddDelSession) int32 {
	t := v.classifiers.at(m.TableIndex)
	switch {
	case t == nil:
		return retvalNoSuchTable
	case uint32(len(m.Match)) != (t.request.SkipNVectors+t.request.MatchNVectors)*vector:
		return retvalInvalidValue
	}
	return t.set(m)
}

func (t *classifyTable) set(m *classify.ClassifyAddDelSession) (retval int32) {
	key := slices.Clone(m.Match[t.request.SkipNVectors*vector:])
	for n := range key {
		key[n] &= t.request.Mask[n]
	}
	session := classify.ClassifySessionDetails{
		TableID: m.TableIndex, HitNextIndex: m.HitNextIndex & 0xffff, Advance: m.Advance, OpaqueIndex: m.OpaqueIndex, Match: key,
	}
	at := slices.IndexFunc(t.sessions, func(s classify.ClassifySessionDetails) bool { return slices.Equal(s.Match, key) })
	switch {
	case m.IsAdd && at >= 0:
		t.sessions[at] = session
	case m.IsAdd:
		t.sessions = append(t.sessions, session)
	case at >= 0:
		t.sessions = slices.Delete(t.sessions, at, at+1)
	default:
		return retvalNoSuchEntry
	}
	return 0
}

func (v *vpp) classifyTableIDs(_ *classify.ClassifyTableIds, reply *classify.ClassifyTableIdsReply) {
	for index := range v.classifiers.all() {
		reply.Ids = append(reply.Ids, index)
	}
}

func (v *vpp) classifyTableInfo(m *classify.ClassifyTableInfo, reply *classify.ClassifyTableInfoReply) {
	t := v.classifiers.at(m.TableID)
	if t == nil {
		reply.Retval = retvalClassifyTableNotFound
		return
	}
	*reply = classify.ClassifyTableInfoReply{
		TableID: m.TableID, Nbuckets: t.request.Nbuckets, MatchNVectors: t.request.MatchNVectors, SkipNVectors: t.request.SkipNVectors,
		ActiveSessions: uint32(len(t.sessions)), NextTableIndex: t.request.NextTableIndex, MissNextIndex: t.request.MissNextIndex,
		Mask: t.request.Mask,
	}
}

func (v *vpp) classifySessionDump(m *classify.ClassifySessionDump, send func(*classify.ClassifySessionDetails)) {
	if t := v.classifiers.at(m.TableID); t != nil {
		for n := range t.sessions {
			send(&t.sessions[n])
		}
	}
}

// policerClassifySet binds an interface to a table, or removes the binding. If the interface is already bound
// to a table, policerClassifySet ignores the request for another binding and reports success
// (policer_classify.c).
func (v *vpp) policerClassifySet(i *iface, m *classify.PolicerClassifySetInterface) int32 {
	table := m.L2TableIndex
	existing, bound := v.classifiers.bound[i.index]
	switch {
	case table == none:
	case v.classifiers.at(table) == nil, !m.IsAdd && (!bound || existing != table):
		return retvalNoSuchTable
	case m.IsAdd && bound:
	case m.IsAdd:
		v.classifiers.bound[i.index], v.classifiers.works[i.index] = table, true
	default:
		delete(v.classifiers.bound, i.index)
		delete(v.classifiers.works, i.index)
	}
	return 0
}

// policerClassifyDump returns all interfaces if the request names the interface with index 0. If the request
// is for all interfaces, it returns none (vl_api_policer_classify_dump_t_handler in classify_api.c). For
// other indices, VPP reads memory out of bounds; the stand-in returns nothing.
func (v *vpp) policerClassifyDump(m *classify.PolicerClassifyDump, send func(*classify.PolicerClassifyDetails)) {
	if m.SwIfIndex != 0 || m.Type != classify.POLICER_CLASSIFY_API_TABLE_L2 {
		return
	}
	for _, at := range slices.Sorted(maps.Keys(v.classifiers.bound)) {
		send(&classify.PolicerClassifyDetails{SwIfIndex: interface_types.InterfaceIndex(at), TableIndex: v.classifiers.bound[at]})
	}
}

// As vnet/l2/l2_input.c does, showL2Input prints the part of "show interface features" about L2 input.
func (v *vpp) showL2Input(i *iface) string {
	if !v.classifiers.works[i.index] {
		return "\nl2-input:\n  none configured\n"
	}
	return "\nl2-input:\n     POLICER_CLAS (l2-policer-classify)\n"
}

// classified returns the index of the policer that polices all frames of the interface because of its
// classify table. all is false if some frames do not reach a policer.
func (v *vpp) classified(i *iface) (policer uint32, all bool) {
	table, bound := v.classifiers.bound[i.index]
	t := v.classifiers.at(table)
	if !bound || !v.classifiers.works[i.index] || t == nil || i.l2.kind == l3Mode || len(t.sessions) != 2 ||
		t.sessions[0].HitNextIndex != t.sessions[1].HitNextIndex {
		return none, false
	}
	return t.sessions[0].HitNextIndex, true
}
