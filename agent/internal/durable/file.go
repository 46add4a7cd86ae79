// Package durable replaces files so that a crash leaves the old content or the new, never a mixture.
package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// IsFull tells of an error of a write whether there was no space, on the disk or in the quota.
func IsFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// Replace writes data to path: temporary file in the same folder, fsync, rename, fsync of the folder.
// When it returns nil the content survives a power cut. On a full disk it takes its space out of the folder's Reserve.
func Replace(path string, data []byte) error { return replace(path, data, true) }

// ReplaceUnsynced is Replace without waiting for the disk: the content survives the death of the process alone.
func ReplaceUnsynced(path string, data []byte) error { return replace(path, data, false) }

func replace(path string, data []byte, wait bool) error {
	err := replaceOnce(path, data, wait)
	if IsFull(err) {
		err = withReserve(filepath.Dir(path), int64(len(data)), func() error { return replaceOnce(path, data, wait) })
	}
	return err
}

func replaceOnce(path string, data []byte, wait bool) (err error) {
	folder := filepath.Dir(path)
	temporary, err := os.CreateTemp(folder, "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = temporary.Close()
			_ = os.Remove(temporary.Name())
			err = fmt.Errorf("replace %s: %w", path, err)
		}
	}()
	if _, err = temporary.Write(data); err != nil {
		return err
	}
	if wait {
		if err = temporary.Sync(); err != nil {
			return err
		}
	}
	if err = temporary.Close(); err != nil {
		return err
	}
	if err = os.Rename(temporary.Name(), path); err != nil || !wait {
		return err
	}
	return SyncFolder(folder)
}

// SyncFolder makes the names in a folder survive a power cut.
func SyncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}
