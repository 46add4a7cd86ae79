// Package durabletest gives tests a disk that is small enough to be filled.
package durabletest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// SmallDisk is a folder on a file system of its own with room for so many bytes. Only root may mount one: whoever
// else runs the test is told that it was skipped.
func SmallDisk(t testing.TB, bytes string) string {
	t.Helper()
	folder := t.TempDir()
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "mode=0700,size="+bytes); err != nil {
		t.Skipf("NOT TESTED: a disk of its own cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(folder, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// Fill writes into a file of the folder until the disk is full; free removes it.
func Fill(t testing.TB, folder string) (free func()) {
	t.Helper()
	path := filepath.Join(folder, "somebody-elses.log")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for page := make([]byte, os.Getpagesize()); err == nil; {
		_, err = file.Write(page)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}
