package pathwatch

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"longline.dev/agent/internal/durable"
	"longline.dev/agent/internal/intent"
)

// HeardFile remembers which wanted paths have been up, since of those alone it is said that they are down, and since when those that
// are down are. It outlives VPP and agent: a path that is down stays so when either starts anew.
type HeardFile struct {
	path    string
	heard   map[intent.Path]int64 // since when it is down, in ms since the Unix epoch; 0: it is not
	changed bool
}

type heardPath struct {
	intent.Path
	DownMS int64 `json:"down_ms,omitempty"`
}

// NoFile remembers as long as the agent runs.
func NoFile() *HeardFile { return &HeardFile{heard: make(map[intent.Path]int64)} }

// OpenHeard reads the file in the folder; none, and one that cannot be understood, remembers nothing.
func OpenHeard(folder string) (*HeardFile, error) {
	f := &HeardFile{path: filepath.Join(folder, "paths.json"), heard: make(map[intent.Path]int64)}
	data, err := os.ReadFile(f.path)
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the paths that have been up: %w", err)
	}
	var paths []heardPath
	if json.Unmarshal(data, &paths) == nil {
		for _, path := range paths {
			f.heard[path.Path] = path.DownMS
		}
	}
	return f, nil
}

// Has reports whether the path has been up.
func (f *HeardFile) Has(path intent.Path) bool {
	_, has := f.heard[path]
	return has
}

// Add notes that the path is up.
func (f *HeardFile) Add(path intent.Path) { f.set(path, 0) }

// Lose notes since when a path that has been up is down.
func (f *HeardFile) Lose(path intent.Path, since time.Time) {
	if f.Has(path) {
		f.set(path, since.UnixMilli())
	}
}

// DownSince is the zero time for a path that was not known to be down.
func (f *HeardFile) DownSince(path intent.Path) time.Time {
	if ms := f.heard[path]; ms != 0 {
		return time.UnixMilli(ms)
	}
	return time.Time{}
}

func (f *HeardFile) set(path intent.Path, downMS int64) {
	if was, has := f.heard[path]; !has || was != downMS {
		f.heard[path], f.changed = downMS, true
	}
}

// Keep forgets all but these.
func (f *HeardFile) Keep(wanted []intent.Path) {
	for path := range f.heard {
		if !slices.Contains(wanted, path) {
			delete(f.heard, path)
			f.changed = true
		}
	}
}

// Write brings what changed to disk, without waiting for it: what a power cut takes is only which paths have been up before.
func (f *HeardFile) Write() error {
	if !f.changed || f.path == "" {
		return nil
	}
	var paths []heardPath
	for _, path := range slices.SortedFunc(maps.Keys(f.heard), intent.Path.Compare) {
		paths = append(paths, heardPath{path, f.heard[path]})
	}
	data, err := json.Marshal(paths)
	if err == nil {
		err = durable.ReplaceUnsynced(f.path, data)
	}
	if err != nil {
		return fmt.Errorf("keep which paths have been up: %w", err)
	}
	f.changed = false
	return nil
}
