package durable

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ErrLocked says that another process works in the folder.
var ErrLocked = errors.New("another process works in this folder")

// Lock locks a folder until the returned file is closed or the process ends in any way. The lock is on the
// folder itself. Any process that may read the folder can lock it, also in another container that shares the
// folder.
func Lock(folder string) (*os.File, error) {
	for {
		file, err := os.Open(folder)
		if err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		}
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			file.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				err = ErrLocked
			}
			return nil, fmt.Errorf("lock %s: %w", folder, err)
		}
		if isStill(file, folder) {
			return file, nil
		}
		file.Close() // another user has replaced the folder meanwhile
	}
}

func isStill(file *os.File, folder string) bool {
	locked, err := file.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(folder)
	return err == nil && os.SameFile(locked, now)
}
