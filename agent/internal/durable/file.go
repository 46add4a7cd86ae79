// Package durable replaces files so that a crash leaves the old or the new content, never a mixture.
package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// IsFull reports whether a write failed because the disk or the quota was full.
func IsFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// Replace writes data to path. It writes a temporary file in the same folder, syncs the file, renames it and
// syncs the folder. When Replace returns nil, the content survives a power failure. On a full disk Replace
// uses the folder's Reserve.
func Replace(path string, data []byte) error { return replace(path, data, true) }

// ReplaceUnsynced is Replace without fsync: the content survives the end of the process, but not a power
// failure.
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
	unlock, err := lockTemporary(temporary)
	if err != nil {
		return err
	}
	defer unlock() // after the rename; until then, the lock prevents RemoveTemporaries from removing the file
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

// lockTemporary locks a file until unlock is called, even if the file is closed earlier. The lock ends with
// the process.
func lockTemporary(file *os.File) (unlock func(), err error) {
	descriptor, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(descriptor, unix.LOCK_EX); err != nil && !errors.Is(err, unix.ENOTSUP) && !errors.Is(err, unix.ENOLCK) {
		_ = unix.Close(descriptor)
		return nil, err
	}
	return func() { _ = unix.Close(descriptor) }, nil
}

// RemoveTemporaries removes temporary files next to these files, and returns their paths. A process that is
// killed during Replace leaves such a file. RemoveTemporaries does not remove a temporary file that a process
// is still writing. A folder that does not exist counts as empty. RemoveTemporaries returns an error if a
// file or folder cannot be read or removed.
func RemoveTemporaries(files ...string) (removed []string, err error) {
	var failed []error
	for _, file := range files {
		folder := filepath.Dir(file)
		entries, err := os.ReadDir(folder)
		if !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, err)
		}
		for _, entry := range entries {
			path := filepath.Join(folder, entry.Name())
			if !entry.Type().IsRegular() || !isTemporaryOf(file, entry.Name()) || isBeingWritten(path) {
				continue
			}
			err := os.Remove(path)
			if err == nil {
				removed = append(removed, path)
			}
			failed = append(failed, err)
		}
	}
	return removed, errors.Join(failed...)
}

// isTemporaryOf reports whether replaceOnce could have given a file this name: a dot, the name of the file, a
// dot and a number.
func isTemporaryOf(file, name string) bool {
	number, isLike := strings.CutPrefix(name, "."+filepath.Base(file)+".")
	return isLike && number != "" && strings.Trim(number, "0123456789") == ""
}

func isBeingWritten(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	return errors.Is(unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// SyncFolder makes the names in a folder survive a power failure.
func SyncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

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

// asideSuffix is appended to the name of a file that was set aside. From the second such file on, a number
// follows the suffix.
const asideSuffix = ".set-aside"

// SetAsideFile is an unusable file that was renamed to Path, where an operator can read it.
type SetAsideFile struct {
	Path string `json:"file"`
	Why  string `json:"why"`
}

// SetAside renames a file to keep it and to free its name. If the rename fails, Path is the old name.
func SetAside(path string, why error) SetAsideFile {
	to := path + asideSuffix
	for n := 2; exists(to); n++ {
		to = fmt.Sprintf("%s%s-%d", path, asideSuffix, n)
	}
	if err := os.Rename(path, to); err != nil {
		return SetAsideFile{path, fmt.Sprintf("%v; and it cannot be renamed: %v", why, err)}
	}
	return SetAsideFile{to, why.Error()}
}

// AllSetAside returns all files that are set aside: the files in now, and the files that earlier starts of
// the agent left in the folders.
func AllSetAside(now []SetAsideFile, folders ...string) []SetAsideFile {
	all := slices.Clone(now)
	for _, folder := range folders {
		entries, _ := os.ReadDir(folder) // a folder that cannot be read counts as empty
		for _, entry := range entries {
			path := filepath.Join(folder, entry.Name())
			if strings.Contains(entry.Name(), asideSuffix) && !slices.ContainsFunc(all, func(a SetAsideFile) bool { return a.Path == path }) {
				all = append(all, SetAsideFile{path, "it could not be used at an earlier start of the agent"})
			}
		}
	}
	return all
}

// StillSetAside returns the files of all that still exist. It omits the files that an operator has removed.
func StillSetAside(all []SetAsideFile) []SetAsideFile {
	return slices.DeleteFunc(slices.Clone(all), func(a SetAsideFile) bool { return !exists(a.Path) })
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

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
