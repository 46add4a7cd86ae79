package report

import (
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/pathwatch"
)

// EndState is the state of an end in the last observation of VPP.
type EndState struct {
	Key            intent.Key
	InSync, LinkUp bool
	ShutDown       bool  // the port is down because of the far end's link
	PathUp         *bool // nil if the tunnel's path is not watched
}

// Ends returns the states of all ends. It returns none while VPP cannot be read.
func (r *Reporter) Ends() []EndState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ends
}

// noteEnds replaces the states that Ends returns.
func (r *Reporter) noteEnds(bodies []endBody) {
	ends := make([]EndState, 0, len(bodies))
	for _, b := range bodies {
		state := EndState{Key: intent.Key{VLL: b.VLL, End: b.End}, InSync: b.InSync, LinkUp: b.LinkUp, ShutDown: b.ShutDown}
		if b.Path != nil {
			up := b.Path.State == string(pathwatch.Up)
			state.PathUp = &up
		}
		ends = append(ends, state)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends = ends
}
