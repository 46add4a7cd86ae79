package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

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
