package converge

import (
	"context"
	"maps"
	"time"

	"go.fd.io/govpp/api"

	"longline.dev/agent/internal/apply"
	"longline.dev/agent/internal/vpp"
)

// Statistics counts events since the start of the agent.
type Statistics struct {
	Converges, Writes, Repairs                               uint64
	FullObservations, QuickObservations, PartialObservations uint64
	LastDuration                                             time.Duration
	Durations                                                Durations
	Operations                                               map[Operation]uint64
}

// DurationBounds are the upper bounds of the buckets of Durations. The last bucket has no upper bound.
var DurationBounds = [...]time.Duration{
	5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
}

// Durations is a histogram of the durations of all converges.
type Durations struct {
	Counts [len(DurationBounds) + 1]uint64
	Sum    time.Duration
}

func (d *Durations) add(duration time.Duration) {
	i := 0
	for i < len(DurationBounds) && duration > DurationBounds[i] {
		i++
	}
	d.Counts[i]++
	d.Sum += duration
}

// Operation is the name of a message that changes VPP, with VPP's result: "ok" or "refused".
type Operation struct{ Message, Result string }

// copied returns a copy that the engine no longer changes.
func (t Statistics) copied() Statistics {
	t.Operations = maps.Clone(t.Operations)
	return t
}

// countingSession counts the messages that change VPP.
type countingSession struct {
	Session
	engine *Engine
}

var _ apply.Session = countingSession{}

func (c countingSession) Calls(ctx context.Context, reqs []api.Message) ([]api.Message, error) {
	replies, err := c.Session.Calls(ctx, reqs)
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	if c.engine.statistics.Operations == nil {
		c.engine.statistics.Operations = make(map[Operation]uint64)
	}
	for i, reply := range replies {
		result := "ok"
		if vpp.Retval(reply) != 0 {
			result = "refused"
		}
		c.engine.statistics.Operations[Operation{reqs[i].GetMessageName(), result}]++
	}
	return replies, err
}
