package report

import "sync"

// Queue keeps samples until the portal has them: bounded, the oldest dropped first and counted.
type Queue struct {
	limit int

	mu      sync.Mutex
	samples []Sample
	dropped int64
	added   chan struct{}
}

// NewQueue holds at most limit samples.
func NewQueue(limit int) *Queue { return &Queue{limit: limit, added: make(chan struct{}, 1)} }

// Add appends a sample and drops the oldest when there is no room.
func (q *Queue) Add(s Sample) {
	q.mu.Lock()
	q.samples = append(q.samples, s)
	if over := len(q.samples) - q.limit; over > 0 {
		q.samples = append([]Sample(nil), q.samples[over:]...)
		q.dropped += int64(over)
	}
	q.mu.Unlock()
	select {
	case q.added <- struct{}{}:
	default:
	}
}

// Added gets a token when there may be samples to send.
func (q *Queue) Added() <-chan struct{} { return q.added }

// Oldest returns up to n samples without removing them.
func (q *Queue) Oldest(n int) []Sample {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]Sample(nil), q.samples[:min(n, len(q.samples))]...)
}

// Done removes everything up to and with that sequence number. refused says that the portal will never
// take them: they count as dropped.
func (q *Queue) Done(seq int64, refused bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for n < len(q.samples) && q.samples[n].Seq <= seq {
		n++
	}
	q.samples = append([]Sample(nil), q.samples[n:]...)
	if refused {
		q.dropped += int64(n)
	}
}

// Dropped counts samples that the portal never got.
func (q *Queue) Dropped() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}
