// Package durabletest provides a small disk that tests can fill.
package durabletest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// SmallDisk returns a folder on a separate file system with the given size. Only root may mount a
// file system: for other users the test is skipped.
func SmallDisk(t testing.TB, bytes string) string {
	t.Helper()
	folder := t.TempDir()
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "mode=0700,size="+bytes); err != nil {
		t.Skipf("NOT TESTED: a separate disk cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(folder, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// Fill writes a file into the folder until the disk is full; free removes the file.
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
