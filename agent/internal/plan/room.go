package plan

import (
	"math"

	"longline.dev/agent/internal/intent"
)

// BeyondRoom gives a reason to each end, in the intent's order, whose new interfaces VPP has no room for.
// An end that makes as many as it deletes needs none.
func (p *Plan) BeyondRoom(in *intent.Intent, room int) map[intent.Key]*Reason {
	if room == math.MaxInt {
		return nil
	}
	grows := p.growth()
	beyond := make(map[intent.Key]*Reason)
	for _, end := range in.Present {
		switch more := grows[end.Key]; {
		case more <= 0:
		case more <= room:
			room -= more
		default:
			beyond[end.Key] = pending("stats_segment_full", "", "VPP's stats segment has room for %d more interfaces and this end"+
				" needs %d; VPP aborts when it is full. Set a larger statseg { size } in its startup.conf and restart VPP", room, more)
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
