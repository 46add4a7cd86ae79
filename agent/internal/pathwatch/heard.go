package pathwatch

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"longline.dev/agent/internal/durable"
	"longline.dev/agent/internal/intent"
)

// HeardFile remembers which wanted paths have been up: of those alone it is said that they are down. It outlives VPP and agent,
// since a path that is down stays so when either starts anew.
type HeardFile struct {
	path    string
	heard   map[intent.Path]bool
	changed bool
}

// NoFile remembers as long as the agent runs.
func NoFile() *HeardFile { return &HeardFile{heard: make(map[intent.Path]bool)} }

// OpenHeard reads the file in the folder; none, and one that cannot be understood, remembers nothing.
func OpenHeard(folder string) (*HeardFile, error) {
	f := &HeardFile{path: filepath.Join(folder, "paths.json"), heard: make(map[intent.Path]bool)}
	data, err := os.ReadFile(f.path)
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the paths that have been up: %w", err)
	}
	var paths []intent.Path
	if json.Unmarshal(data, &paths) == nil {
		for _, path := range paths {
			f.heard[path] = true
		}
	}
	return f, nil
}

// Has reports whether the path has been up.
func (f *HeardFile) Has(path intent.Path) bool { return f.heard[path] }

// Add notes that the path is up, and says whether that is new.
func (f *HeardFile) Add(path intent.Path) bool {
	if f.heard[path] {
		return false
	}
	f.heard[path], f.changed = true, true
	return true
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
	data, err := json.Marshal(slices.SortedFunc(maps.Keys(f.heard), intent.Path.Compare))
	if err == nil {
		err = durable.ReplaceUnsynced(f.path, data)
	}
	if err != nil {
		return fmt.Errorf("keep which paths have been up: %w", err)
	}
	f.changed = false
	return nil
}
