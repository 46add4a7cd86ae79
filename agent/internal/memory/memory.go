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
	// From base and perEnd on (bytes) the collector works harder all the same. With a thousand
	// ends that is 47 MiB, which with the program itself stays below 64 MB; an end takes far less, so that
	// the collector is never pressed.
	base, perEnd = 16 << 20, 32 << 10
)

// Bound sets the limit for an intent, nil for none.
func Bound(in *intent.Intent) {
	const fewEnds = 500
	ends := fewEnds
	if in != nil {
		ends = max(fewEnds, len(in.Present)+len(in.Removed))
	}
	debug.SetMemoryLimit(base + int64(ends)*perEnd)
}
