package durable

import (
	"os"
	"path/filepath"
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
		t.Fatalf("the folder holds %v, %v, want one file", entries, err)
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
		t.Fatalf("the folder holds %v, %v, want only what was there", entries, err)
	}
}
