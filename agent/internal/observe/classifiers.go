package observe

import (
	"context"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/classify"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/vlib"

	"longline.dev/agent/internal/ownership"
)

// Classifiers contains the classify tables with which a VPP before 26.06 polices frames that its policer node
// does not receive.
type Classifiers struct {
	Tables      map[uint32]*ClassifyTable // tables of the agent, by index
	OtherTables map[uint32]bool           // tables of other clients
	// Bound maps the index of each interface to the table that is bound to it. It includes the indices of
	// deleted interfaces, because VPP keeps their bindings.
	Bound map[uint32]uint32
	// Workers is the number of worker threads that receive frames, without the main thread. OneWorker lists
	// the ports whose queues all belong to the same worker.
	Workers   int
	OneWorker map[uint32]bool
}

// ReceivedByOne reports whether one thread receives all frames of a port. Several threads would change a
// policer's token bucket without a lock. In addition, the clocks of threads differ, and VPP fills the bucket
// if the time seems to go backwards (docs/adr/0032).
func (c *Classifiers) ReceivedByOne(port uint32) bool { return c.Workers <= 1 || c.OneWorker[port] }

// BoundTable returns the table of the agent that is bound to an interface, or nil if there is none.
func (c *Classifiers) BoundTable(index uint32) *ClassifyTable {
	if table, bound := c.Bound[index]; bound {
		return c.Tables[table]
	}
	return nil
}

// ClassifyTable is one of the agent's classify tables.
type ClassifyTable struct {
	Index uint32
	Mark  uint32 // identifies the end, see ownership.TableMark
	// Hits are the indices of the policers in the table's sessions, by the group bit of the frames' destination
	// address. NoIndex means that there is no such session.
	Hits [2]uint32
}

// GroupBit is the mask of a table: the lowest bit of a frame's first byte, which is set for multicast (IEEE
// 802). Two sessions match all frames: one for frames with the bit, and one for frames without it.
var GroupBit = append([]byte{1}, make([]byte, 15)...)

// TableBuckets is the number of hash buckets of a table. A table has two sessions.
const TableBuckets = 2

// classifierMessages lists the messages that policing by classifier needs in addition to the messages of
// policers.
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

// takeClassifiers reads which tables are bound to interfaces, the contents of the agent's tables, and whether
// the bound tables work on the given interfaces. known has the tables of an earlier observation.
// takeClassifiers does not read a known table again if the table is bound only to other interfaces.
func (s *Snapshot) takeClassifiers(ctx context.Context, session Session, known map[uint32]*ClassifyTable, of []*Interface) error {
	s.Classifiers = noClassifiers()
	if s.Policing != ClassifierPolicing {
		return nil
	}
	// If the query names interface 0, VPP reports all interfaces; if the query is for all interfaces, VPP
	// reports none (vl_api_policer_classify_dump_t_handler in classify_api.c).
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
	return err
}

// takeTables reads the classify tables. It queries only tables that VPP lists, because VPP fills an error
// reply with uninitialized memory.
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

// tableOf returns the table in a reply, without its sessions. It returns nil if the agent did not create the
// table.
func tableOf(m *classify.ClassifyTableInfoReply) *ClassifyTable {
	if m.Retval != 0 || !ownership.IsTableMark(m.MissNextIndex) || m.SkipNVectors != 0 || !slices.Equal(m.Mask, GroupBit) {
		return nil
	}
	return &ClassifyTable{Index: m.TableID, Mark: m.MissNextIndex, Hits: [2]uint32{NoIndex, NoIndex}}
}

// takeClassified reads whether the tables that are bound to these interfaces work. VPP keeps the binding when
// an interface leaves L2. It also keeps the binding for the next interface with the same index. In both cases
// the table no longer polices the interface. Only VPP's CLI shows this.
func (s *Snapshot) takeClassified(ctx context.Context, session Session, of []*Interface) error {
	var bound []*Interface
	for _, i := range of {
		delete(s.Classified, i.Index)
		delete(s.ClassifiedUnknown, i.Index)
		if s.BoundTable(i.Index) != nil {
			bound = append(bound, i)
		}
	}
	works, err := shownOn(ctx, session, bound, "l2-input", "POLICER_CLAS (l2-policer-classify)")
	for n := range works {
		note(s.Classified, s.ClassifiedUnknown, bound[n].Index, works[n])
	}
	return err
}

// takeWorkers reads which worker receives from which queue. For a bond, the workers of its members count. Any
// other port without receive queues counts as a port from which several workers receive.
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
