package durable

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestReplaceLeavesOnlyTheNewContent(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "intent.json")
	for _, text := range []string{"first, which is longer", "second"} {
		if err := Replace(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != text {
			t.Fatalf("got %q, %v, want %q", got, err, text)
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 {
		t.Fatalf("the folder contains %v, %v, want one file", entries, err)
	}
}

func TestAFailedReplaceKeepsTheOldContentAndLeavesNothingBehind(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "taken")
	if err := os.MkdirAll(filepath.Join(path, "child"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Replace(path, []byte("new")); err == nil {
		t.Fatal("a folder was replaced by a file")
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 {
		t.Fatalf("the folder contains %v, %v, want only what was there", entries, err)
	}
}

// TestOnlyTemporaryFilesOfKilledProcessesAreRemoved: a killed process no longer locks its file.
func TestOnlyTemporaryFilesOfKilledProcessesAreRemoved(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "intent.json")
	touch := func(name string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stay := []string{"intent.json", ".intent.json", ".intent.json.swp", ".intent.json.12.bak", ".journal.json.7", "intent.json.8"}
	for _, name := range append([]string{".intent.json.1234", ".intent.json.5"}, stay...) {
		touch(name)
	}
	if err := os.Mkdir(filepath.Join(folder, ".intent.json.6"), 0o700); err != nil {
		t.Fatal(err)
	}
	writing, err := os.CreateTemp(folder, ".intent.json.*")
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := lockTemporary(writing)
	if err != nil {
		t.Fatal(err)
	}
	if err := writing.Close(); err != nil {
		t.Fatal(err)
	}
	removed, err := RemoveTemporaries(path, filepath.Join(folder, "missing", "intent.json"))
	if want := []string{filepath.Join(folder, ".intent.json.1234"), filepath.Join(folder, ".intent.json.5")}; err != nil || !slices.Equal(removed, want) {
		t.Errorf("removed %q, %v; want %q", removed, err, want)
	}
	for _, name := range append(stay, ".intent.json.6", filepath.Base(writing.Name())) {
		if _, err := os.Lstat(filepath.Join(folder, name)); err != nil {
			t.Error(err)
		}
	}
	unlock()
	if removed, err := RemoveTemporaries(path); err != nil || !slices.Equal(removed, []string{writing.Name()}) {
		t.Errorf("once its writer is gone: removed %q, %v", removed, err)
	}
}
