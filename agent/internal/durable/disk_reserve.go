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
	// overhead is the disk space (bytes, rounded up) that a file takes in addition to its content.
	// The size of a reserve is a multiple of overhead.
	overhead = 16 << 10
)

// reserving serializes the use of reserves. Without it, one goroutine could refill a reserve with
// the space that Replace in another goroutine has released and not used yet.
var reserving sync.Mutex

// Reserve keeps at least the given space (bytes) in a folder for use by Replace when the disk is full. The
// reserve is a file of that size. Only Replace shortens it. Reserve returns an error of the disk, for example
// if the disk has no room for the reserve.
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

// withReserve calls write. If the disk is full, it releases some space of the folder's reserve and calls
// write again, until write succeeds or the reserve is used up. After a success, withReserve refills
// the reserve as far as the disk has room.
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

// release shortens a reserve by the given size. If the file is not longer than the given size,
// release removes it, so that an inode becomes free too. It returns false if there is no reserve.
func release(path string, size int64) bool {
	if left := kept(path) - size; left > 0 {
		return os.Truncate(path, left) == nil
	}
	return os.Remove(path) == nil
}
