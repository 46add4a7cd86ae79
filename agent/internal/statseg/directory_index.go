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
	// absentFor is how long an entry that is not there is not looked for again.
	absentFor = 30 * time.Second
)

// directoryIndex are where entries stand in the directory. VPP moves none while it lives, and finding them anew
// means to match tens of thousands of names: each interface has some twenty.
type directoryIndex struct {
	indices map[string]uint32
	missed  map[string]time.Time // names that were not there, and when they were looked for
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
		if _, there := s.index.indices[name]; !there && time.Since(s.index.missed[name]) >= absentFor {
			wanted, quoted = append(wanted, name), append(quoted, regexp.QuoteMeta(name))
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	var found []adapter.StatIdentifier
	err := retryWhileBusy(func() (err error) {
		found, err = s.client.ListStats("^(" + strings.Join(quoted, "|") + ")$")
		return err
	})
	if err != nil {
		return err
	}
	if s.index.indices == nil {
		s.index = directoryIndex{make(map[string]uint32), make(map[string]time.Time)}
	}
	for _, name := range wanted {
		s.index.missed[name] = time.Now()
	}
	for _, entry := range found {
		s.index.indices[string(entry.Name)] = entry.Index
		delete(s.index.missed, string(entry.Name))
	}
	return nil
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
