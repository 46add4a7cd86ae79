package main

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"longline.dev/agent/internal/config"
)

// TestAStartRemovesTheTemporaryFilesOfAKilledAgent in every folder where the agent writes through temporary
// files, and removes no other file.
func TestAStartRemovesTheTemporaryFilesOfAKilledAgent(t *testing.T) {
	a := newAgent(t)
	c, err := config.Load(a.config)
	allow(t, err)
	left := []string{
		filepath.Join(c.StateDir, ".intent.json.1234"), filepath.Join(c.StateDir, ".journal.json.1"), filepath.Join(c.StateDir, ".tagged.log.2"),
		filepath.Join(c.StateDir, ".freeze.json.3"), filepath.Join(c.StateDir, ".paths.json.4"), filepath.Join(c.StateDir, ".rebuilds.json.5"),
		filepath.Join(c.StateDir, "counters", ".position.json.6"), filepath.Join(c.StateDir, "events", ".position.json.7"),
		temporaryOf(c.TLS.Key + ".new"), temporaryOf(c.TLS.Certificate), temporaryOf(c.TLS.CA),
	}
	others := []string{filepath.Join(c.StateDir, ".nfs000001"), filepath.Join(filepath.Dir(c.TLS.Key), ".somebody.8")}
	for _, path := range append(left, others...) {
		allow(t, os.MkdirAll(filepath.Dir(path), 0o700))
		allow(t, os.WriteFile(path, []byte("half"), 0o600))
	}
	stop := a.start()
	for deadline := time.Now().Add(testTimeout); a.status("/healthz") != http.StatusOK; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not start")
		}
	}
	stop()
	for _, path := range left {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is left", path)
		}
	}
	for _, path := range others {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
}

func temporaryOf(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".99")
}

// temporaries lists the hidden files under a folder.
func temporaries(t *testing.T, folder string) (found []string) {
	t.Helper()
	allow(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasPrefix(entry.Name(), ".") {
			found = append(found, path)
		}
		return err
	}))
	return found
}
