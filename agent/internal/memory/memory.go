// Package memory tells Go's collector how much the agent may take.
package memory

import (
	"runtime/debug"

	"longline.dev/agent/internal/intent"
)

const (
	// GCPercent is for debug.SetGCPercent. It spares the collector: a pass over a thousand VLLs allocates a few MB that are garbage at its
	// end, and with Go's default of 100 the collector runs several times within it.
	GCPercent = 400
	// From base and perEnd on (bytes) the collector works harder all the same. With a thousand ends that is 47 MiB, which
	// with the program itself stays below 64 MB; with 15,000 it is 197 MiB, and the unit in deploy/systemd has room for
	// it. What is alive takes 4 KiB an end, and twice that while all of them are made or reported.
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

// limit is in bytes. The program itself, some 10 MB of file, is not in it.
func limit(ends int) int64 { return base + int64(ends)*perEnd }
