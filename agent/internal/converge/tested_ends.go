package converge

import (
	"maps"
	"time"

	"longline.dev/agent/internal/intent"
)

// testedFor is the duration for which the engine remembers that an end was tested. The interval between two
// samples of the counters is much shorter.
const testedFor = time.Hour

// noteTested records the ends that are under test now in any of these intents. It ignores nil intents.
func (e *Engine) noteTested(intents ...*intent.Intent) {
	now := e.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.tested, func(_ intent.Key, at time.Time) bool { return now.Sub(at) > testedFor })
	for _, in := range intents {
		if in == nil {
			continue
		}
		for _, end := range in.Present {
			if end.Testing {
				e.tested[end.Key] = now
			}
		}
	}
}

// TestedSince returns the ends that were under test at any time since the given time. The tunnels of these
// ends receive test frames, and VPP drops these frames. The stored intent is not enough to find these ends,
// because a test may start and end between two samples of the counters.
func (e *Engine) TestedSince(since time.Time) map[intent.Key]bool {
	stored, _ := e.store.Current()
	e.noteTested(stored)
	e.mu.Lock()
	defer e.mu.Unlock()
	tested := make(map[intent.Key]bool)
	for key, at := range e.tested {
		if !at.Before(since) {
			tested[key] = true
		}
	}
	return tested
}
