// Package spool keeps records on disk until somebody has taken them: in order, bounded by a limit and by the disk, the
// oldest dropped first and counted. What Append returned nil for survives a power cut. A record may be handed out
// again after a crash, and is never lost by one.
package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"longline.dev/agent/internal/durable"
)

// shares is into how many files the limit is divided, and so how coarsely the oldest is dropped.
const shares = 16

// Spool is a folder of segment files and a file that says how far they have been taken.
type Spool struct {
	folder string
	limit  int64 // bytes of all segments
	added  chan struct{}

	// First gives what comes before all records its space on the same disk; while there is none for it, the oldest
	// records go. Set it before the first Append; nil: nothing comes before them.
	First func() error

	waiting, dropped atomic.Int64

	mu       sync.Mutex
	opened   bool
	setAside *durable.SetAsideFile
	segments []*segment // oldest first; the last one is written to if it is open
	taken    Position   // everything before it has been taken or dropped, whatever the disk knows of it
	noted    bool       // the disk knows of it, and of all that was dropped
	writing  *os.File   // nil until the next Append begins a segment
}

// Position is a place between records.
type Position struct {
	segment uint64
	offset  int64
}

// Record is one record and the place behind it.
type Record struct {
	Data []byte
	End  Position
}

// Open continues with what an earlier run left behind, and begins a new segment for what comes: a torn
// record at the end of an old one stays the last of its file and is never read. A folder that cannot be used is tried
// again by whatever needs it next, which says why: nothing else has to wait for it.
func Open(folder string, limit int64) *Spool {
	s := &Spool{folder: folder, limit: limit, added: make(chan struct{}, 1), noted: true}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.open()
	s.signal()
	return s
}

func (s *Spool) open() error {
	if s.opened {
		return nil
	}
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return err
	}
	_, _ = durable.RemoveTemporaries(filepath.Join(s.folder, positionName)) // else the next start does it
	position := s.loadPosition()
	taken := Position{position.Segment, position.Offset}
	found, err := findSegments(s.folder)
	if err != nil {
		return err
	}
	var segments []*segment
	var waiting int64
	for _, g := range found {
		if g.id < taken.segment {
			_ = os.Remove(g.path) // else the next start does it
			continue
		}
		from := int64(0)
		if g.id == taken.segment {
			from = taken.offset
		}
		if err := g.survey(from); err != nil {
			return err
		}
		segments = append(segments, g)
		waiting += g.waiting
	}
	s.segments, s.taken, s.opened = segments, taken, true
	s.waiting.Store(waiting)
	s.dropped.Add(position.Dropped)
	return nil
}

// SetAside is what was set aside when the spool was opened, nil for nothing: then all that is there is handed out
// again, and counting what is dropped begins anew.
func (s *Spool) SetAside() *durable.SetAsideFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.setAside
}

// Folder is where the records are.
func (s *Spool) Folder() string { return s.folder }

// Close ends writing.
func (s *Spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rest()
}

// rest closes the file that is written to; the next Append begins another.
func (s *Spool) rest() error {
	if s.writing == nil {
		return nil
	}
	err := s.writing.Close()
	s.writing = nil
	return err
}

// Added gets a token when there may be records to take.
func (s *Spool) Added() <-chan struct{} { return s.added }

func (s *Spool) signal() {
	select {
	case s.added <- struct{}{}:
	default:
	}
}

// Waiting is the number of records that have not been taken.
func (s *Spool) Waiting() int64 { return s.waiting.Load() }

// Dropped counts the records that nobody will get, since the folder was made.
func (s *Spool) Dropped() int64 { return s.dropped.Load() }

// Append adds a record and waits for the disk. After an error the record is lost and counted as dropped.
func (s *Spool) Append(data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.open()
	if err == nil {
		err = s.append(data)
	}
	if err != nil {
		s.drop(1)
		err = fmt.Errorf("spool: %w", err)
	} else {
		s.waiting.Add(1)
		s.signal()
	}
	_ = s.note() // Take tells of it
	return err
}

func (s *Spool) append(data []byte) error {
	if len(data) == 0 || len(data) > maxRecord {
		return fmt.Errorf("a record of %d bytes is not in 1..%d", len(data), maxRecord)
	}
	need := int64(frameHeader + len(data))
	if need > s.limit {
		return fmt.Errorf("a record of %d bytes does not fit into %d", len(data), s.limit)
	}
	if s.writing != nil && s.last().size+need > s.limit/shares {
		if err := s.rest(); err != nil {
			return err
		}
	}
	s.makeRoom(need)
	for {
		err := s.first()
		if err == nil {
			err = s.put(data)
		}
		if !durable.IsFull(err) || !s.dropOldest() {
			return err
		}
	}
}

// first is an error only where there is no space: whatever else may be wrong there is no reason to lose records.
func (s *Spool) first() error {
	if s.First != nil {
		if err := s.First(); durable.IsFull(err) {
			return err
		}
	}
	return nil
}

// put writes a record behind the others.
func (s *Spool) put(data []byte) error {
	if s.writing == nil {
		if err := s.begin(); err != nil {
			return err
		}
	}
	g := s.last()
	if err := write(s.writing, g.size, data); err != nil {
		_ = s.writing.Truncate(g.size) // gives back what it took; what stays of it is never read
		_ = s.rest()
		if g.size == 0 {
			_ = os.Remove(g.path)
			s.segments = s.segments[:len(s.segments)-1]
		}
		return err
	}
	g.size += int64(frameHeader + len(data))
	g.waiting++
	return nil
}

func (s *Spool) last() *segment { return s.segments[len(s.segments)-1] }

func (s *Spool) begin() error {
	g := &segment{id: s.taken.segment + 1}
	if len(s.segments) > 0 {
		g.id = s.last().id + 1
	}
	g.path = segmentPath(s.folder, g.id)
	file, err := os.OpenFile(g.path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := durable.SyncFolder(s.folder); err != nil {
		file.Close()
		return err
	}
	s.segments, s.writing = append(s.segments, g), file
	return nil
}

// makeRoom drops the oldest segments until need bytes fit.
func (s *Spool) makeRoom(need int64) {
	total := need
	for _, g := range s.segments {
		total += g.size
	}
	for total > s.limit && len(s.segments) > 0 {
		total -= s.segments[0].size
		s.dropOldest()
	}
}

// dropOldest gives up the oldest segment; false when there is none.
func (s *Spool) dropOldest() bool {
	if len(s.segments) == 0 {
		return false
	}
	oldest := s.segments[0]
	if len(s.segments) == 1 {
		_ = s.rest()
	}
	s.drop(oldest.waiting)
	s.waiting.Add(-oldest.waiting)
	s.moveTo(Position{oldest.id + 1, 0})
	return true
}

// drop counts records that nobody will get.
func (s *Spool) drop(n int64) {
	s.dropped.Add(n)
	s.noted = s.noted && n == 0
}

// Oldest reads up to n records without taking them. What is damaged, with all behind it in its segment, is
// dropped and counted.
func (s *Spool) Oldest(n int) ([]Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	var records []Record
	for i := 0; i < len(s.segments) && len(records) < n; i++ {
		g, from := s.segments[i], int64(0)
		if g.id == s.taken.segment {
			from = s.taken.offset
		}
		some, err := g.read(from, n-len(records))
		records = append(records, some...)
		switch {
		case errors.Is(err, errDamaged):
			lost := g.waiting - int64(len(some))
			g.size, g.waiting = endOf(some, from), int64(len(some))
			s.drop(lost)
			s.waiting.Add(-lost)
			if i == len(s.segments)-1 {
				_ = s.rest() // nothing may be written behind it
			}
		case err != nil:
			return nil, fmt.Errorf("spool: %w", err)
		}
	}
	return records, nil
}

func endOf(records []Record, otherwise int64) int64 {
	if len(records) == 0 {
		return otherwise
	}
	return records[len(records)-1].End.offset
}

// Take gives up records that Oldest handed out, and everything before them: from now on nobody gets them, whatever
// becomes of the disk. refused says that nobody ever got them: they count as dropped. What was dropped meanwhile is
// not counted twice. Error: the disk took no note of it, so after a crash they may come again.
func (s *Spool) Take(records []Record, refused bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	records = slices.DeleteFunc(slices.Clone(records), func(r Record) bool { return !s.taken.before(r.End) })
	if len(records) > 0 {
		for _, r := range records {
			s.find(r.End.segment).waiting--
		}
		n := int64(len(records))
		s.waiting.Add(-n)
		if refused {
			s.drop(n)
		}
		end := records[n-1].End
		if g := s.find(end.segment); end.offset >= g.size && (g != s.last() || s.writing == nil) {
			end = Position{g.id + 1, 0}
		}
		s.moveTo(end)
	}
	if err := s.note(); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	return nil
}

// before reports whether a place is before another.
func (p Position) before(other Position) bool {
	return p.segment < other.segment || p.segment == other.segment && p.offset < other.offset
}

func (s *Spool) find(id uint64) *segment {
	for _, g := range s.segments {
		if g.id == id {
			return g
		}
	}
	return nil
}

// moveTo first says so on disk and then removes files: the other way round a crash would lose the count of what was
// dropped. Where the disk takes no note of it the files go all the same, for on a full disk they are the room that it
// needs; whatever comes next tries again.
func (s *Spool) moveTo(p Position) {
	s.taken, s.noted = p, false
	_ = s.note()
	for len(s.segments) > 0 && s.segments[0].id < p.segment {
		_ = os.Remove(s.segments[0].path) // else Open does it
		s.segments = slices.Delete(s.segments, 0, 1)
	}
}
