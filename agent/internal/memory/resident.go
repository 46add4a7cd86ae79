package memory

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

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
