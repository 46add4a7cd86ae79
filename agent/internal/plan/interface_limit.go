package plan

import (
	"math"

	"longline.dev/agent/internal/intent"
)

// BeyondInterfaceLimit gives a reason to each end, in the intent's order, whose new interfaces VPP has no room for.
// An end that makes as many as it deletes needs none.
func (p *Plan) BeyondInterfaceLimit(in *intent.Intent, free int) map[intent.Key]*Reason {
	if free == math.MaxInt {
		return nil
	}
	grows := p.growth()
	beyond := make(map[intent.Key]*Reason)
	for _, end := range in.Present {
		switch more := grows[end.Key]; {
		case more <= 0:
		case more <= free:
			free -= more
		default:
			beyond[end.Key] = pending("stats_segment_full", "", "VPP's stats segment has room for %d more interfaces and this end"+
				" needs %d; VPP aborts when it is full. Set a larger statseg { size } in its startup.conf and restart VPP", free, more)
		}
	}
	return beyond
}

// growth is how many interfaces more each end will have.
func (p *Plan) growth() map[intent.Key]int {
	grows := make(map[intent.Key]int)
	for _, op := range p.Ops {
		switch op.Action.(type) {
		case CreateSub, CreateTunnel:
			grows[op.End]++
		case DeleteSub, DeleteTunnel:
			grows[op.End]--
		}
	}
	return grows
}
