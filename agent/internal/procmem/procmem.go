// Package procmem limits the memory of the agent's process through Go's garbage collector, and reads the resident
// memory of a process.
package procmem

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"longline.dev/agent/internal/intent"
)

const (
	// GCPercent is the argument of debug.SetGCPercent. It reduces the number of collections. A reconciliation
	// of a thousand VLLs allocates a few MB that are garbage at its end. With Go's default of 100, several
	// collections would run during the reconciliation.
	GCPercent = 400
	// The memory limit is base plus perEnd for each end (bytes). Above the limit the collector runs more often,
	// regardless of GCPercent. For a thousand ends, the limit is 47 MiB; with the program itself, the agent
	// then needs less than 64 MB. For 15,000 ends, the limit is 197 MiB, which is below the memory limit of
	// the unit in deploy/systemd. Live data takes 4 KiB for each end, and 8 KiB while all ends are being
	// created or reported.
	base, perEnd = 36 << 20, 11 << 10
)

// Bound sets the memory limit for an intent. A nil intent means that there is none.
func Bound(in *intent.Intent) {
	ends := 0
	if in != nil {
		ends = len(in.Present) + len(in.Removed)
	}
	debug.SetMemoryLimit(limit(ends))
}

// limit returns the limit in bytes. The limit does not include the program itself, whose file has about 10
// MB.
func limit(ends int) int64 { return base + int64(ends)*perEnd }

// Resident is the resident memory of a process, in bytes.
type Resident struct {
	Own    int64 // RssAnon and RssFile of proc(5): heap, stacks and the program itself
	Shared int64 // RssShmem: for the agent, this is VPP's stats segment, which belongs to VPP
}

// Of reads /proc/PID/status.
func Of(pid int) (Resident, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Resident{}, err
	}
	var anonymous, files, shared int64
	found := 0
	for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		into, wanted := map[string]*int64{"RssAnon": &anonymous, "RssFile": &files, "RssShmem": &shared}[name]
		if !wanted {
			continue
		}
		kibibytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err != nil {
			return Resident{}, fmt.Errorf("%s in /proc/%d/status: %w", name, pid, err)
		}
		*into = kibibytes << 10
		found++
	}
	if found != 3 {
		return Resident{}, fmt.Errorf("/proc/%d/status lacks RssAnon, RssFile or RssShmem", pid)
	}
	return Resident{Own: anonymous + files, Shared: shared}, nil
}
