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

// asideSuffix is what follows the name of a file that was set aside, with a number from the second one on.
const asideSuffix = ".set-aside"

// SetAsideFile is a file that could not be used and was renamed to Path, where somebody may look at it.
type SetAsideFile struct{ Path, Why string }

// SetAside renames a file, so that it is kept and its name is free. Where not even that can be done, Path is what it was.
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

// AllSetAside are all that stands aside: these, and those that earlier starts have left in the folders.
func AllSetAside(now []SetAsideFile, folders ...string) []SetAsideFile {
	all := slices.Clone(now)
	for _, folder := range folders {
		entries, _ := os.ReadDir(folder) // a folder that cannot be read shows nothing
		for _, entry := range entries {
			path := filepath.Join(folder, entry.Name())
			if strings.Contains(entry.Name(), asideSuffix) && !slices.ContainsFunc(all, func(a SetAsideFile) bool { return a.Path == path }) {
				all = append(all, SetAsideFile{path, "it could not be used at an earlier start of the agent"})
			}
		}
	}
	return all
}

// StillSetAside leaves out what somebody has removed since.
func StillSetAside(all []SetAsideFile) []SetAsideFile {
	return slices.DeleteFunc(slices.Clone(all), func(a SetAsideFile) bool { return !exists(a.Path) })
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
