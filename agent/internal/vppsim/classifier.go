package vppsim

import (
	"slices"

	"go.fd.io/govpp/binapi/classify"
	"go.fd.io/govpp/binapi/interface_types"
)

// classifiers has VPP's pool of classify tables, and the interfaces that use these tables for policing.
type classifiers struct {
	pool  []*classifyTable // by index; nil if the table was deleted
	freed []uint32
	bound map[uint32]uint32 // sw_if_index -> table; an entry remains when its interface is deleted
	works map[uint32]bool   // by sw_if_index: whether the L2 input feature is on; it is lost when the interface leaves L2 or is deleted
}

type classifyTable struct {
	request  classify.ClassifyAddDelTable
	sessions []classify.ClassifySessionDetails
}

const vector = 16 // bytes

func classifierOperations() []operation {
	return []operation{
		on((*vpp).classifyAddDelTable, &classify.ClassifyAddDelTableReply{}),
		on((*vpp).classifyAddDelSession, &classify.ClassifyAddDelSessionReply{}),
		on((*vpp).classifyTableIDs, &classify.ClassifyTableIdsReply{}),
		on((*vpp).classifyTableInfo, &classify.ClassifyTableInfoReply{}),
		on((*vpp).classifySessionDump, &classify.ClassifySessionDetails{}),
		on((*vpp).policerClassifySet, &classify.PolicerClassifySetInterfaceReply{}),
		on((*vpp).policerClassifyDump, &classify.PolicerClassifyDetails{}),
	}
}

func (v *vpp) classifyTableAt(index uint32) *classifyTable {
	if uint64(index) < uint64(len(v.classifiers.pool)) {
		return v.classifiers.pool[index]
	}
	return nil
}

// classifyAddDelTable creates or deletes a table. As in VPP, a table can be deleted although an interface
// uses it.
func (v *vpp) classifyAddDelTable(c *call, m *classify.ClassifyAddDelTable) {
	reply := &classify.ClassifyAddDelTableReply{NewTableIndex: none, SkipNVectors: none, MatchNVectors: none}
	cs := &v.classifiers
	switch {
	case uint32(len(m.Mask)) != m.MatchNVectors*vector:
		reply.Retval = retvalInvalidValue
	case !m.IsAdd && v.classifyTableAt(m.TableIndex) == nil:
		reply.Retval = retvalNoSuchTable
	case !m.IsAdd:
		cs.pool[m.TableIndex] = nil
		cs.freed = append(cs.freed, m.TableIndex)
	case m.MemorySize == 0:
		reply.Retval = retvalInvalidMemorySize
	case m.Nbuckets == 0 || m.MatchNVectors < 1 || m.MatchNVectors > 5:
		reply.Retval = retvalInvalidValue
	default:
		index := uint32(len(cs.pool))
		if n := len(cs.freed); n > 0 {
			index, cs.freed = cs.freed[n-1], cs.freed[:n-1]
		} else {
			cs.pool = append(cs.pool, nil)
		}
		cs.pool[index] = &classifyTable{request: *m}
		reply.NewTableIndex, reply.SkipNVectors, reply.MatchNVectors = index, m.SkipNVectors, m.MatchNVectors
	}
	c.reply(reply)
}

// classifyAddDelSession adds, replaces or deletes a session of a table. Only 16 bits of the session's
// target are stored (vnet_classify.h).
func (v *vpp) classifyAddDelSession(c *call, m *classify.ClassifyAddDelSession) {
	reply := &classify.ClassifyAddDelSessionReply{}
	t := v.classifyTableAt(m.TableIndex)
	switch {
	case t == nil:
		reply.Retval = retvalNoSuchTable
	case uint32(len(m.Match)) != (t.request.SkipNVectors+t.request.MatchNVectors)*vector:
		reply.Retval = retvalInvalidValue
	default:
		reply.Retval = t.set(m)
	}
	c.reply(reply)
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

func (v *vpp) classifyTableIDs(c *call, _ *classify.ClassifyTableIds) {
	reply := &classify.ClassifyTableIdsReply{}
	for index, t := range v.classifiers.pool {
		if t != nil {
			reply.Ids = append(reply.Ids, uint32(index))
		}
	}
	c.reply(reply)
}

func (v *vpp) classifyTableInfo(c *call, m *classify.ClassifyTableInfo) {
	t := v.classifyTableAt(m.TableID)
	if t == nil {
		c.reply(&classify.ClassifyTableInfoReply{Retval: retvalClassifyTableNotFound})
		return
	}
	c.reply(&classify.ClassifyTableInfoReply{
		TableID: m.TableID, Nbuckets: t.request.Nbuckets, MatchNVectors: t.request.MatchNVectors, SkipNVectors: t.request.SkipNVectors,
		ActiveSessions: uint32(len(t.sessions)), NextTableIndex: t.request.NextTableIndex, MissNextIndex: t.request.MissNextIndex,
		Mask: t.request.Mask,
	})
}

func (v *vpp) classifySessionDump(c *call, m *classify.ClassifySessionDump) {
	if t := v.classifyTableAt(m.TableID); t != nil {
		for n := range t.sessions {
			c.reply(&t.sessions[n])
		}
	}
}

// policerClassifySet binds an interface to a table, or removes the binding. If the interface is already bound
// to a table, policerClassifySet ignores the request for another binding and reports success
// (policer_classify.c).
func (v *vpp) policerClassifySet(c *call, m *classify.PolicerClassifySetInterface) {
	reply := &classify.PolicerClassifySetInterfaceReply{}
	at, table := uint32(m.SwIfIndex), m.L2TableIndex
	existing, bound := v.classifiers.bound[at]
	switch {
	case v.at(m.SwIfIndex) == nil:
		reply.Retval = retvalInvalidInterface
	case table == none:
	case v.classifyTableAt(table) == nil, !m.IsAdd && (!bound || existing != table):
		reply.Retval = retvalNoSuchTable
	case m.IsAdd && bound:
	case m.IsAdd:
		v.classifiers.bound[at], v.classifiers.works[at] = table, true
	default:
		delete(v.classifiers.bound, at)
		delete(v.classifiers.works, at)
	}
	c.reply(reply)
}

// policerClassifyDump returns all interfaces if the request names the interface with index 0. If the request
// is for all interfaces, it returns none (vl_api_policer_classify_dump_t_handler in classify_api.c). For
// other indices, VPP reads memory out of bounds; the stand-in returns nothing.
func (v *vpp) policerClassifyDump(c *call, m *classify.PolicerClassifyDump) {
	if m.SwIfIndex != 0 || m.Type != classify.POLICER_CLASSIFY_API_TABLE_L2 {
		return
	}
	var interfaces []uint32
	for at := range v.classifiers.bound {
		interfaces = append(interfaces, at)
	}
	slices.Sort(interfaces)
	for _, at := range interfaces {
		c.reply(&classify.PolicerClassifyDetails{
			SwIfIndex: interface_types.InterfaceIndex(at), TableIndex: v.classifiers.bound[at],
		})
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
	t := v.classifyTableAt(table)
	if !bound || !v.classifiers.works[i.index] || t == nil || i.l2.kind == l3Mode || len(t.sessions) != 2 ||
		t.sessions[0].HitNextIndex != t.sessions[1].HitNextIndex {
		return none, false
	}
	return t.sessions[0].HitNextIndex, true
}
