package observe

import (
	"context"
	"fmt"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/classify"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/vlib"

	"longline.dev/agent/internal/ownership"
)

// Classifiers are the classify tables by which a VPP polices before 26.06 what its policer node does not get.
type Classifiers struct {
	Tables      map[uint32]*ClassifyTable // the agent's, by index
	OtherTables map[uint32]bool           // somebody else's
	// Bound are the tables to which VPP keeps interfaces bound, also such that are gone: interface -> table.
	Bound map[uint32]uint32
	// Workers is how many threads receive frames besides the main one, and OneWorker which ports one of several receives alone.
	Workers   int
	OneWorker map[uint32]bool
}

// ReceivedByOne reports whether one thread receives all that comes in from a port. Several would draw from a policer's bucket
// without a lock, and by clocks that go back and fill it (docs/adr/0032).
func (c *Classifiers) ReceivedByOne(port uint32) bool { return c.Workers <= 1 || c.OneWorker[port] }

// ClassifyTable is one of the agent's classify tables.
type ClassifyTable struct {
	Index uint32
	Mark  uint32 // whose it is: ownership.TableMark
	// Hits are the policers that its sessions lead to, by the group bit of the destination address; NoIndex without a session.
	Hits [2]uint32
}

// GroupBit is the mask of a table: the lowest bit of a frame's first byte, which is set in frames for many (IEEE 802). All
// frames have it or have it not, so two sessions are hit by all, whatever they carry.
var GroupBit = append([]byte{1}, make([]byte, 15)...)

// TableBuckets are as few as there are sessions.
const TableBuckets = 2

// classifierMessages are what policing by classifier takes besides policers.
var classifierMessages = []api.Message{
	&classify.ClassifyAddDelTable{}, &classify.ClassifyAddDelSession{}, &classify.ClassifyTableIds{}, &classify.ClassifyTableInfo{},
	&classify.ClassifySessionDump{}, &classify.PolicerClassifySetInterface{}, &classify.PolicerClassifyDump{}, &vlib.CliInband{},
}

func noClassifiers() Classifiers {
	return Classifiers{
		Tables: make(map[uint32]*ClassifyTable), OtherTables: make(map[uint32]bool), Bound: make(map[uint32]uint32),
		OneWorker: make(map[uint32]bool),
	}
}

// takeClassifiers reads which interfaces are bound to which tables, the agent's tables, and whether they work on these of its
// interfaces. known are tables that were read earlier; those that are bound to none but other interfaces are as they were.
func (s *Snapshot) takeClassifiers(ctx context.Context, session Session, known map[uint32]*ClassifyTable, of []*Interface) error {
	s.Classifiers = noClassifiers()
	if s.Policing != ClassifierPolicing {
		return nil
	}
	// Asked for interface 0 VPP tells of all, and asked for all of none (vl_api_policer_classify_dump_t_handler in classify_api.c).
	err := session.Dump(ctx, []api.Message{&classify.PolicerClassifyDump{Type: classify.POLICER_CLASSIFY_API_TABLE_L2}}, func(msg api.Message) {
		if m, ok := msg.(*classify.PolicerClassifyDetails); ok {
			s.Bound[uint32(m.SwIfIndex)] = m.TableIndex
		}
	})
	if err == nil {
		err = s.takeTables(ctx, session, known, of)
	}
	if err == nil {
		err = s.takeClassified(ctx, session, of)
	}
	if err == nil {
		err = s.takeWorkers(ctx, session)
	}
	if err != nil {
		return fmt.Errorf("classifiers: %w", err)
	}
	return nil
}

// takeTables asks about no table that VPP does not list: it fills a refusal with what happens to stand in its memory.
func (s *Snapshot) takeTables(ctx context.Context, session Session, known map[uint32]*ClassifyTable, of []*Interface) error {
	reply, err := session.Call(ctx, &classify.ClassifyTableIds{})
	if err != nil {
		return err
	}
	again := make(map[uint32]bool, len(of))
	for _, i := range of {
		again[i.Index] = true
	}
	same, read := make(map[uint32]bool), make(map[uint32]bool)
	for i, table := range s.Bound {
		same[table], read[table] = true, read[table] || again[i]
	}
	var infos, sessions []api.Message
	for _, index := range reply.(*classify.ClassifyTableIdsReply).Ids {
		if t := known[index]; t != nil && same[index] && !read[index] {
			s.Tables[index] = t
			continue
		}
		infos = append(infos, &classify.ClassifyTableInfo{TableID: index})
	}
	answers, err := session.Calls(ctx, infos)
	if err != nil {
		return err
	}
	for _, answer := range answers {
		m := answer.(*classify.ClassifyTableInfoReply)
		if t := tableOf(m); t != nil {
			s.Tables[m.TableID] = t
			sessions = append(sessions, &classify.ClassifySessionDump{TableID: m.TableID})
		} else if m.Retval == 0 {
			s.OtherTables[m.TableID] = true
		}
	}
	return session.Dump(ctx, sessions, func(msg api.Message) {
		if m, ok := msg.(*classify.ClassifySessionDetails); ok && len(m.Match) > 0 && s.Tables[m.TableID] != nil {
			s.Tables[m.TableID].Hits[m.Match[0]&1] = m.HitNextIndex
		}
	})
}

// tableOf is nil for what the agent did not make.
func tableOf(m *classify.ClassifyTableInfoReply) *ClassifyTable {
	if m.Retval != 0 || !ownership.IsTableMark(m.MissNextIndex) || m.SkipNVectors != 0 || !slices.Equal(m.Mask, GroupBit) {
		return nil
	}
	return &ClassifyTable{Index: m.TableID, Mark: m.MissNextIndex, Hits: [2]uint32{NoIndex, NoIndex}}
}

// takeClassified: VPP keeps a table bound to what has left L2 meanwhile, and to the next interface of an index, and no longer
// polices there. Only the CLI shows that.
func (s *Snapshot) takeClassified(ctx context.Context, session Session, of []*Interface) error {
	var asked []*Interface
	for _, i := range of {
		delete(s.Classified, i.Index)
		delete(s.ClassifiedUnknown, i.Index)
		if table, bound := s.Bound[i.Index]; bound && s.Tables[table] != nil {
			asked = append(asked, i)
		}
	}
	works, err := shownOn(ctx, session, asked, "l2-input", "POLICER_CLAS (l2-policer-classify)")
	for n := range works {
		note(s.Classified, s.ClassifiedUnknown, asked[n].Index, works[n])
	}
	return err
}

// takeWorkers reads which worker receives from which queue. A bond is received by the workers of its members; any other port
// without a queue of its own counts as received by several.
func (s *Snapshot) takeWorkers(ctx context.Context, session Session) error {
	if s.Workers = session.Info().Workers; s.Workers <= 1 || !session.Has(&interfaces.SwInterfaceRxPlacementDump{}) {
		return nil
	}
	worker := make(map[uint32]uint32)
	err := session.Dump(ctx, []api.Message{&interfaces.SwInterfaceRxPlacementDump{SwIfIndex: anyInterface}}, func(msg api.Message) {
		if m, ok := msg.(*interfaces.SwInterfaceRxPlacementDetails); ok {
			port := uint32(m.SwIfIndex)
			before, known := worker[port]
			s.OneWorker[port] = !known || s.OneWorker[port] && before == m.WorkerID
			worker[port] = m.WorkerID
		}
	})
	for bond, members := range s.Bonds.Members {
		s.OneWorker[bond] = !slices.ContainsFunc(members, func(member uint32) bool {
			return !s.OneWorker[member] || worker[member] != worker[members[0]]
		})
	}
	return err
}
