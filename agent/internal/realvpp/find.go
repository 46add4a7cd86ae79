// Package realvpp finds an installed VPP and starts private VPPs for tests. Every private VPP has its own
// folder, sockets and shared memory, and uses no network card of the machine.
package realvpp

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Install is an installation of VPP on this machine.
type Install struct {
	Binary     string
	PluginPath string // folder of vpp_plugins; "" lets VPP choose
	Libraries  string // value of LD_LIBRARY_PATH; "" if the system finds them
}

// Prefixes returns the folders to search, in order. If VPP_PREFIX is set, it is the only folder.
func Prefixes() []string {
	if chosen := os.Getenv("VPP_PREFIX"); chosen != "" {
		return []string{chosen}
	}
	return []string{"/opt/vpp", "/usr"}
}

// Find returns the first VPP in the folders of Prefixes. The error names every folder that was searched.
func Find() (Install, error) { return find(Prefixes()) }

// Installed returns every VPP of this machine. The VPP in VPP_PREFIX comes first. It searches the usual
// folders, and other releases next to /opt/vpp, such as /opt/vpp-26.06.
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
	return Install{}, fmt.Errorf("no VPP: found no bin/vpp under %s", strings.Join(prefixes, ", "))
}
