// Package memory limits the memory that the agent uses, through Go's garbage collector.
package memory

import (
	"runtime/debug"

	"longline.dev/agent/internal/intent"
)

const (
	// GCPercent is the argument of debug.SetGCPercent. It reduces the number of collections: a
	// reconciliation of a thousand VLLs allocates a few MB that are garbage at its end, and with Go's
	// default of 100 several collections would run during it.
	GCPercent = 400
	// The memory limit is base plus perEnd for each end (bytes). Above the limit the collector runs more often,
	// regardless of GCPercent. The limit is 47 MiB for a thousand ends, which together with the program itself
	// stays below 64 MB. It is 197 MiB for 15,000 ends, within the limit of the unit in deploy/systemd. Live
	// data takes 4 KiB for each end, and 8 KiB while all ends are being created or reported.
	base, perEnd = 36 << 20, 11 << 10
)

// Bound sets the limit for an intent, nil for none.
func Bound(in *intent.Intent) {
	ends := 0
	if in != nil {
		ends = len(in.Present) + len(in.Removed)
	}
	debug.SetMemoryLimit(limit(ends))
}

// limit returns the limit in bytes. It does not include the program itself, about 10 MB of file.
func limit(ends int) int64 { return base + int64(ends)*perEnd }
