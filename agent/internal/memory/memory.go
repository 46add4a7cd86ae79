// Package memory limits the memory that the agent uses, through Go's garbage collector.
package memory

import (
	"runtime/debug"

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
