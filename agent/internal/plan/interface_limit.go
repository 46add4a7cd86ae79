package plan

import (
	"math"

	"longline.dev/agent/internal/intent"
)

// BeyondInterfaceLimit returns the ends that need more new interfaces than VPP has room for, each with a
// reason. free is the number of interfaces for which VPP has room; math.MaxInt means that there is no limit.
// The ends get the room in the order of the intent. An end that creates only as many interfaces as it deletes
// needs no room.
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

// growth returns the number of additional interfaces of each end.
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
