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

// Aside is a file that could not be used and was renamed to Path, where somebody may look at it.
type Aside struct{ Path, Why string }

// SetAside renames a file, so that it is kept and its name is free. Where not even that can be done, Path is what it was.
func SetAside(path string, why error) Aside {
	to := path + asideSuffix
	for n := 2; exists(to); n++ {
		to = fmt.Sprintf("%s%s-%d", path, asideSuffix, n)
	}
	if err := os.Rename(path, to); err != nil {
		return Aside{path, fmt.Sprintf("%v; and it cannot be renamed: %v", why, err)}
	}
	return Aside{to, why.Error()}
}

// Asides are all that stands aside: these, and those that earlier starts have left in the folders.
func Asides(now []Aside, folders ...string) []Aside {
	all := slices.Clone(now)
	for _, folder := range folders {
		entries, _ := os.ReadDir(folder) // a folder that cannot be read shows nothing
		for _, entry := range entries {
			path := filepath.Join(folder, entry.Name())
			if strings.Contains(entry.Name(), asideSuffix) && !slices.ContainsFunc(all, func(a Aside) bool { return a.Path == path }) {
				all = append(all, Aside{path, "it could not be used at an earlier start of the agent"})
			}
		}
	}
	return all
}

// Standing leaves out what somebody has removed since.
func Standing(all []Aside) []Aside {
	return slices.DeleteFunc(slices.Clone(all), func(a Aside) bool { return !exists(a.Path) })
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
