package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	reserveName = "reserve"
	// overhead is the disk space that a file takes in addition to its content, rounded up (bytes). Reserves
	// are multiples of it.
	overhead = 16 << 10
)

// reserving prevents space that Replace takes out of a reserve from being put back before it is used.
var reserving sync.Mutex

// Reserve keeps at least the given space (bytes) in a folder for use by Replace when the disk is full. The
// reserve is a file of that size, which Replace shortens. It never shrinks otherwise. Error: that of the
// disk, which may have no room for the reserve.
func Reserve(folder string, size int64) error {
	reserving.Lock()
	defer reserving.Unlock()
	return reserve(folder, size)
}

func reserve(folder string, size int64) error {
	path := filepath.Join(folder, reserveName)
	size = (size + overhead - 1) / overhead * overhead
	kept := kept(path)
	if kept >= size {
		return nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("reserve: %w", err)
	}
	defer file.Close()
	err = unix.Fallocate(int(file.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		_, err = file.WriteAt(make([]byte, size-kept), kept)
	}
	if err != nil {
		return fmt.Errorf("reserve %d bytes in %s: %w", size, folder, err)
	}
	return nil
}

// kept returns the size of a reserve (bytes).
func kept(reserve string) int64 {
	info, err := os.Stat(reserve)
	if err != nil {
		return 0
	}
	return info.Size()
}

// withReserve repeats a write while the disk is full and the folder's reserve has space to release.
// Afterwards it puts back as much as possible.
func withReserve(folder string, size int64, write func() error) error {
	reserving.Lock()
	defer reserving.Unlock()
	path := filepath.Join(folder, reserveName)
	before := kept(path)
	err := write()
	for IsFull(err) && release(path, size+overhead) {
		err = write()
	}
	if err == nil && before > 0 {
		_ = reserve(folder, before) // if this fails, the next call of Reserve tries again
	}
	return err
}

// release releases the given space of a reserve, and finally the reserve's file itself, because the disk
// may lack inodes. It returns false if there is no reserve.
func release(path string, size int64) bool {
	if left := kept(path) - size; left > 0 {
		return os.Truncate(path, left) == nil
	}
	return os.Remove(path) == nil
}
