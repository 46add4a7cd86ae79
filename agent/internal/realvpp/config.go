package realvpp

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// startup returns the startup.conf for one private run of VPP. It enables no polling driver (no DPDK, no
// memif), so an idle VPP sleeps. The heaps and buffers suit a small machine. The DPDK plugin is disabled
// because it would take the machine's idle network cards.
func startup(install Install, folder, prefix string, options Options) string {
	var b strings.Builder
	fmt.Fprintf(&b, "unix { nodaemon runtime-dir %s cli-listen %s log %s nosyslog }\n",
		folder, filepath.Join(folder, "cli.sock"), filepath.Join(folder, "vpp.log"))
	if options.Group != 0 {
		fmt.Fprintf(&b, "unix { gid %d }\n", options.Group)
	}
	if options.Workers != 0 {
		fmt.Fprintf(&b, "cpu { main-core %d workers %d }\n", firstCPU(), options.Workers)
	}
	fmt.Fprintf(&b, "api-segment { prefix %s }\n", prefix)
	fmt.Fprintf(&b, "socksvr { socket-name %s }\n", filepath.Join(folder, "api.sock"))
	fmt.Fprintf(&b, "statseg { socket-name %s size %s update-interval 1 }\n",
		filepath.Join(folder, "stats.sock"), cmp.Or(options.StatsSegment, "256M"))
	fmt.Fprintf(&b, "memory { main-heap-size 2G main-heap-page-size 4k }\n")
	fmt.Fprintf(&b, "buffers { buffers-per-numa 4096 page-size 4k }\n")
	fmt.Fprintf(&b, "plugins {\n")
	if install.PluginPath != "" {
		fmt.Fprintf(&b, "  path %s\n", install.PluginPath)
	}
	if len(options.Plugins) > 0 {
		fmt.Fprintf(&b, "  plugin default { disable }\n")
		for _, plugin := range options.Plugins {
			fmt.Fprintf(&b, "  plugin %s_plugin.so { enable }\n", plugin)
		}
	} else {
		fmt.Fprintf(&b, "  plugin dpdk_plugin.so { disable }\n")
	}
	fmt.Fprintf(&b, "}\n")
	return b.String()
}

// firstCPU returns a CPU that this process may use. Earlier releases of VPP require a CPU for the main
// thread when there are worker threads.
func firstCPU() int {
	var usable unix.CPUSet
	if unix.SchedGetaffinity(0, &usable) == nil {
		for cpu := range len(usable) * 64 {
			if usable.IsSet(cpu) {
				return cpu
			}
		}
	}
	return 0
}
