// Package spool keeps records on disk, in order, until a consumer has taken them. The size of a spool is
// limited by a given limit and by the free space of the disk. The spool drops the oldest records first, and
// counts the dropped records. A record survives a power failure as soon as Append has returned nil. After a
// crash the spool may return a record again, but it does not lose one.
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

// shares is the number of files for the whole limit. The spool drops one file at a time.
const shares = 16

// Spool is a folder of segment files and a file that records how many of the records have been taken.
type Spool struct {
	folder string
	limit  int64 // bytes of all segments
	added  chan struct{}

	// First reserves space on the same disk for data that is more important than all records. While First
	// fails for lack of space, the spool drops its oldest records. If First is nil, there is no reserve. Set
	// First before the first Append.
	First func() error

	waiting, dropped atomic.Int64

	mu       sync.Mutex
	opened   bool
	setAside *durable.SetAsideFile
	segments []*segment // oldest first; if writing is set, it is the file of the last segment
	taken    Position   // all records before it have been taken or dropped, even if the disk has not recorded it
	noted    bool       // the disk has recorded taken and dropped
	writing  *os.File   // nil until the next Append starts a segment
}

// Position is a place between two records.
type Position struct {
	segment uint64
	offset  int64
}

// Record is one record, with the position after it.
type Record struct {
	Data []byte
	End  Position
}

// Open opens the spool with the records of an earlier run, and starts a new segment for new records. Nothing is
// appended to older segments. A record that a crash has cut short therefore stays the last one of its segment,
// and the spool does not return it. If the folder cannot be used, Open reports no error, so that the agent can run without the spool. Each later call of a method tries
// again and returns the error.
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
	_, _ = durable.RemoveTemporaries(filepath.Join(s.folder, positionName)) // after an error, the next start removes them
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
			_ = os.Remove(g.path) // after an error, the next start removes it
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

// SetAside returns the file that was set aside when the spool was opened, or nil. If there is such a file,
// the spool returns all existing records again, and the count of dropped records starts at 0.
func (s *Spool) SetAside() *durable.SetAsideFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.setAside
}

// Folder returns the folder of the records.
func (s *Spool) Folder() string { return s.folder }

// Close closes the open segment.
func (s *Spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closeSegment()
}

// closeSegment closes the segment file that is open for writing. The next Append starts another segment.
func (s *Spool) closeSegment() error {
	if s.writing == nil {
		return nil
	}
	err := s.writing.Close()
	s.writing = nil
	return err
}

// Added returns a channel that receives a token when there may be records to take.
func (s *Spool) Added() <-chan struct{} { return s.added }

func (s *Spool) signal() {
	select {
	case s.added <- struct{}{}:
	default:
	}
}

// Waiting returns the number of records that have not been taken.
func (s *Spool) Waiting() int64 { return s.waiting.Load() }

// Dropped returns how many records have been lost since the folder was created.
func (s *Spool) Dropped() int64 { return s.dropped.Load() }

// Append adds a record and waits for the disk. After an error, the record is lost and counted as dropped.
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
	_ = s.note() // Take returns the error
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
		if err := s.closeSegment(); err != nil {
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

// first calls First. It returns only errors for lack of space, because other errors are no reason to drop
// records.
func (s *Spool) first() error {
	if s.First != nil {
		if err := s.First(); durable.IsFull(err) {
			return err
		}
	}
	return nil
}

func (s *Spool) put(data []byte) error {
	if s.writing == nil {
		if err := s.begin(); err != nil {
			return err
		}
	}
	g := s.last()
	if err := write(s.writing, g.size, data); err != nil {
		_ = s.writing.Truncate(g.size) // frees the space; the rest of the record is never read
		_ = s.closeSegment()
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

// makeRoom drops the oldest segments until there is room for need bytes.
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

// dropOldest drops the oldest segment. It returns false if there is no segment.
func (s *Spool) dropOldest() bool {
	if len(s.segments) == 0 {
		return false
	}
	oldest := s.segments[0]
	if len(s.segments) == 1 {
		_ = s.closeSegment()
	}
	s.drop(oldest.waiting)
	s.waiting.Add(-oldest.waiting)
	s.moveTo(Position{oldest.id + 1, 0})
	return true
}

func (s *Spool) drop(n int64) {
	s.dropped.Add(n)
	s.noted = s.noted && n == 0
}

// Oldest returns up to n records without taking them. It drops and counts a damaged record and all later
// records of its segment.
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
				_ = s.closeSegment() // no record may be written after the damaged one
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

// Take removes records that Oldest returned, and all records before them. If refused is true, the consumer
// has rejected the records, and they count as dropped. Records that were dropped in the meantime are not
// counted twice. The spool does not return removed records again, even if the disk cannot record their
// removal. If Take returns an error, the disk has not recorded the position, so the records may be returned
// again after a crash.
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

// moveTo records the new position on disk before it removes files. In the reverse order, a crash would lose
// the count of dropped records. moveTo removes the files even if the position cannot be recorded because the
// disk is full: the removal makes space. The next call that writes records the position.
func (s *Spool) moveTo(p Position) {
	s.taken, s.noted = p, false
	_ = s.note()
	for len(s.segments) > 0 && s.segments[0].id < p.segment {
		_ = os.Remove(s.segments[0].path) // after an error, Open removes it
		s.segments = slices.Delete(s.segments, 0, 1)
	}
}
