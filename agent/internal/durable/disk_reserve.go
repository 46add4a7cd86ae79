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
	// beside is what a file takes on disk besides its content, rounded up (bytes); reserves are multiples of it.
	beside = 16 << 10
)

// reserving keeps what Replace takes out of a reserve from being put back before it was used.
var reserving sync.Mutex

// Reserve keeps at least that much space (bytes) in a folder for what Replace writes there when the disk is full:
// a file of that name and size, which Replace shortens. It never gets smaller by itself. Error: that of the disk,
// which may have no room for it.
func Reserve(folder string, size int64) error {
	reserving.Lock()
	defer reserving.Unlock()
	return reserve(folder, size)
}

func reserve(folder string, size int64) error {
	path := filepath.Join(folder, reserveName)
	size = (size + beside - 1) / beside * beside
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

// kept is how much there is (bytes).
func kept(reserve string) int64 {
	info, err := os.Stat(reserve)
	if err != nil {
		return 0
	}
	return info.Size()
}

// withReserve writes again for as long as the disk is full and the folder's reserve has something to give, and puts
// back what it can.
func withReserve(folder string, size int64, write func() error) error {
	reserving.Lock()
	defer reserving.Unlock()
	path := filepath.Join(folder, reserveName)
	before := kept(path)
	err := write()
	for IsFull(err) && release(path, size+beside) {
		err = write()
	}
	if err == nil && before > 0 {
		_ = reserve(folder, before) // else whoever calls Reserve next
	}
	return err
}

// release gives back that much of a reserve, at last its name too, which may be what the disk lacks; false when there is
// none.
func release(path string, size int64) bool {
	if left := kept(path) - size; left > 0 {
		return os.Truncate(path, left) == nil
	}
	return os.Remove(path) == nil
}
