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

// UpPathsFile records which wanted paths have been up. If such a path is down now, the file also has the
// start of the outage. Only a path that has been up can have the state Down. The record survives restarts of
// VPP and of the agent.
type UpPathsFile struct {
	path      string
	downSince map[intent.Path]int64 // start of the outage, in ms since the Unix epoch; 0 while the path is up
	changed   bool
}

type upPath struct {
	intent.Path
	DownMS int64 `json:"down_ms,omitempty"`
}

// NoFile returns a record that exists only in memory.
func NoFile() *UpPathsFile { return &UpPathsFile{downSince: make(map[intent.Path]int64)} }

// OpenUpPaths reads the file in the folder. If the file is missing or cannot be decoded, the record is empty.
// OpenUpPaths returns an error if the file cannot be read.
func OpenUpPaths(folder string) (*UpPathsFile, error) {
	f := &UpPathsFile{path: filepath.Join(folder, "paths.json"), downSince: make(map[intent.Path]int64)}
	data, err := os.ReadFile(f.path)
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the paths that have been up: %w", err)
	}
	var paths []upPath
	if json.Unmarshal(data, &paths) == nil {
		for _, path := range paths {
			f.downSince[path.Path] = path.DownMS
		}
	}
	return f, nil
}

// Has reports whether the path has been up.
func (f *UpPathsFile) Has(path intent.Path) bool {
	_, has := f.downSince[path]
	return has
}

// Add records that the path is up.
func (f *UpPathsFile) Add(path intent.Path) { f.set(path, 0) }

// Lose records the start of an outage, if the path has been up before.
func (f *UpPathsFile) Lose(path intent.Path, since time.Time) {
	if f.Has(path) {
		f.set(path, since.UnixMilli())
	}
}

// DownSince returns the start of the path's outage, or the zero time if no outage is known.
func (f *UpPathsFile) DownSince(path intent.Path) time.Time {
	if ms := f.downSince[path]; ms != 0 {
		return time.UnixMilli(ms)
	}
	return time.Time{}
}

func (f *UpPathsFile) set(path intent.Path, downMS int64) {
	if was, has := f.downSince[path]; !has || was != downMS {
		f.downSince[path], f.changed = downMS, true
	}
}

// Keep removes all paths that are not in wanted.
func (f *UpPathsFile) Keep(wanted []intent.Path) {
	for path := range f.downSince {
		if !slices.Contains(wanted, path) {
			delete(f.downSince, path)
			f.changed = true
		}
	}
}

// Write writes changes to the file, without waiting for the disk. A power failure may lose the record.
func (f *UpPathsFile) Write() error {
	if !f.changed || f.path == "" {
		return nil
	}
	var paths []upPath
	for _, path := range slices.SortedFunc(maps.Keys(f.downSince), intent.Path.Compare) {
		paths = append(paths, upPath{path, f.downSince[path]})
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
