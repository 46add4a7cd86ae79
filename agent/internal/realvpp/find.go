// Package realvpp finds an installed VPP and starts private ones for tests: every run has its
// own folder, sockets and shared memory, and takes no network card of the machine.
package realvpp

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Install is a VPP on this machine.
type Install struct {
	Binary     string
	PluginPath string // folder of vpp_plugins; "" leaves it to VPP
	Libraries  string // for LD_LIBRARY_PATH; "" where the system finds them
}

// Prefixes are the places looked at, in this order: that of VPP_PREFIX alone where that is set.
func Prefixes() []string {
	if chosen := os.Getenv("VPP_PREFIX"); chosen != "" {
		return []string{chosen}
	}
	return []string{"/opt/vpp", "/usr"}
}

// Find returns the first VPP; the error names every place looked at.
func Find() (Install, error) { return find(Prefixes()) }

// Installed is every VPP of this machine, that of VPP_PREFIX first: the usual places, and beside /opt/vpp other releases as
// /opt/vpp-26.06.
func Installed() []Install {
	others, _ := filepath.Glob("/opt/vpp-*")
	var all []Install
	for _, prefix := range slices.Concat(Prefixes(), []string{"/opt/vpp", "/usr"}, others) {
		if install, err := find([]string{prefix}); err == nil && !slices.Contains(all, install) {
			all = append(all, install)
		}
	}
	return all
}

func find(prefixes []string) (Install, error) {
	for _, prefix := range prefixes {
		binary := filepath.Join(prefix, "bin", "vpp")
		info, err := os.Stat(binary)
		if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			continue
		}
		install := Install{Binary: binary}
		for _, pattern := range []string{"lib/vpp_plugins", "lib/*/vpp_plugins", "lib64/vpp_plugins"} {
			if found, _ := filepath.Glob(filepath.Join(prefix, pattern)); len(found) > 0 {
				install.PluginPath = found[0]
				break
			}
		}
		if prefix != "/usr" && install.PluginPath != "" {
			install.Libraries = filepath.Dir(install.PluginPath)
		}
		return install, nil
	}
	return Install{}, fmt.Errorf("no VPP: looked for bin/vpp under %s", strings.Join(prefixes, ", "))
}
