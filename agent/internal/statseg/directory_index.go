package statseg

import (
	"errors"
	"regexp"
	"strings"
	"time"

	"go.fd.io/govpp/adapter"
)

const (
	// busyRetries is the largest number of attempts to read while VPP rewrites the segment.
	busyRetries = 10
	// absentFor is the shortest time before the agent searches again for an entry that did not exist.
	absentFor = 30 * time.Second
)

// directoryIndex caches the positions of entries in the directory. VPP does not move an entry during a run of
// VPP. A search compares tens of thousands of names, because each interface has about twenty names.
type directoryIndex struct {
	indices map[string]uint32
	pools   []string             // names of the entries of buffer pools
	missed  map[string]time.Time // names that did not exist, with the time of the last search
	epoch   int64                // epoch at the last search; while the epoch is the same, VPP has added no entry
}

// entries returns the named entries and omits names without an entry.
func (s *Segment) entries(names ...string) ([]adapter.StatEntry, error) {
	dir, err := s.directory(names...)
	if err != nil {
		return nil, err
	}
	return dir.Entries, nil
}

// directory returns the named entries and the epoch of the directory.
func (s *Segment) directory(names ...string) (*adapter.StatDir, error) {
	if err := s.findIndices(names); err != nil {
		return nil, err
	}
	var indices []uint32
	for _, name := range names {
		if index, exists := s.index.indices[name]; exists {
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
	s.lastEpoch = dir.Epoch
	for _, entry := range dir.Entries {
		if s.index.indices[string(entry.Name)] != entry.Index {
			s.index = directoryIndex{}
			return nil, errors.New("the directory has changed")
		}
	}
	return dir, nil
}

func (s *Segment) findIndices(names []string) error {
	var missing, quoted []string
	for _, name := range names {
		if _, exists := s.index.indices[name]; !exists && s.mayExistNow(name) {
			missing, quoted = append(missing, name), append(quoted, regexp.QuoteMeta(name))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	epoch := s.lastEpoch
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
	s.index.epoch = epoch
	for _, name := range missing {
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

// mayExistNow reports whether a search for a name can succeed. It returns false if the last search for the
// name failed less than absentFor ago. It also returns false if the epoch has not changed since the last
// search, because VPP changes the epoch when it adds an entry. If no epoch has been read (its value is 0),
// only the time matters.
func (s *Segment) mayExistNow(name string) bool {
	missed, known := s.index.missed[name]
	return !known || time.Since(missed) >= absentFor && (s.lastEpoch == 0 || s.lastEpoch != s.index.epoch)
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
