package statseg

import (
	"errors"
	"regexp"
	"strings"
	"time"

	"go.fd.io/govpp/adapter"
)

const (
	// busyRetries bounds how often a segment that is being rewritten is read anew.
	busyRetries = 10
	// absentFor is how long at least an entry that is not there is not looked for again.
	absentFor = 30 * time.Second
)

// directoryIndex are where entries stand in the directory. VPP moves none while it lives, and finding them anew
// means to match tens of thousands of names: each interface has some twenty.
type directoryIndex struct {
	indices map[string]uint32
	pools   []string             // names of the buffer pools' entries
	missed  map[string]time.Time // names that were not there, and when they were looked for
	epoch   int64                // in which something was looked for last: while it stands, nothing has come
}

// entries reads the named entries; those that are not there are left out.
func (s *Segment) entries(names ...string) ([]adapter.StatEntry, error) {
	dir, err := s.directory(names...)
	if err != nil {
		return nil, err
	}
	return dir.Entries, nil
}

// directory is entries with the epoch in which they were read.
func (s *Segment) directory(names ...string) (*adapter.StatDir, error) {
	if err := s.findIndices(names); err != nil {
		return nil, err
	}
	var indices []uint32
	for _, name := range names {
		if index, there := s.index.indices[name]; there {
			indices = append(indices, index)
		}
	}
	var dir *adapter.StatDir
	err := retryWhileBusy(func() (err error) {
		dir, err = s.client.PrepareDirOnIndex(indices...)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.seen = dir.Epoch
	for _, entry := range dir.Entries {
		if s.index.indices[string(entry.Name)] != entry.Index {
			s.index = directoryIndex{}
			return nil, errors.New("the directory has changed")
		}
	}
	return dir, nil
}

func (s *Segment) findIndices(names []string) error {
	var wanted, quoted []string
	for _, name := range names {
		if _, there := s.index.indices[name]; !there && s.mayHaveCome(name) {
			wanted, quoted = append(wanted, name), append(quoted, regexp.QuoteMeta(name))
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	before := s.seen
	var found []adapter.StatIdentifier
	err := retryWhileBusy(func() (err error) {
		found, err = s.client.ListStats("^(?:" + strings.Join(append(quoted, poolsPattern), "|") + ")$")
		return err
	})
	if err != nil {
		return err
	}
	if s.index.indices == nil {
		s.index = directoryIndex{indices: make(map[string]uint32), missed: make(map[string]time.Time)}
	}
	s.index.epoch = before
	for _, name := range wanted {
		s.index.missed[name] = time.Now()
	}
	for _, entry := range found {
		name := string(entry.Name)
		if _, known := s.index.indices[name]; !known && isPool(name) {
			s.index.pools = append(s.index.pools, name)
		}
		s.index.indices[name] = entry.Index
		delete(s.index.missed, name)
	}
	return nil
}

// mayHaveCome reports whether a name that was not there is worth another look. What comes into the directory moves the
// epoch; an epoch that was never read tells nothing.
func (s *Segment) mayHaveCome(name string) bool {
	missed, known := s.index.missed[name]
	return !known || time.Since(missed) >= absentFor && (s.seen == 0 || s.seen != s.index.epoch)
}

func retryWhileBusy(read func() error) (err error) {
	for range busyRetries {
		if err = read(); !errors.Is(err, adapter.ErrStatsDataBusy) && !errors.Is(err, adapter.ErrStatsAccessFailed) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return err
}
