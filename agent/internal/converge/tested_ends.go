package converge

import (
	"maps"
	"time"

	"longline.dev/agent/internal/intent"
)

// testedFor is how long the engine remembers that an end was tested. The interval of samples is much
// shorter.
const testedFor = time.Hour

// noteTested records the ends that are under test now, by the stored intent or by the one that follows it.
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

// TestedSince returns the ends that were under test at some time since then. Their tunnels receive test
// frames, which VPP drops there. A test may start and end between two samples.
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
