package vpp

import (
	"context"
	"time"
)

// waiting is a call that waits for answers. Each is a sign of life, but only the one that makes enough wakes it: with
// thousands of answers, waking for each takes longer than the answers do. All but its channel is used with the session locked.
type waiting struct {
	heard int  // answers
	until int  // so many are enough, 0 for the last
	over  bool // the last has come

	enough chan struct{} // a token once there is enough
}

func newWaiting() *waiting { return &waiting{enough: make(chan struct{}, 1)} }

// hear counts an answer; last says that no other follows.
func (w *waiting) hear(last bool) {
	w.heard++
	w.over = w.over || last
	if w.heard == w.until || w.over {
		select {
		case w.enough <- struct{}{}:
		default:
		}
	}
}

// await waits until so many answers have come since the call began, or with 0 until the last has. Silence for longer than the timeout
// ends the session, at the latest after twice as long.
func (s *Session) await(ctx context.Context, w *waiting, until int) error {
	s.mu.Lock()
	w.until = until
	heard, enough := w.heard, w.over || until > 0 && w.heard >= until
	s.mu.Unlock()
	if enough {
		return nil
	}
	timer := time.NewTimer(s.timeout)
	defer timer.Stop()
	for {
		select {
		case <-w.enough:
			return nil
		case <-s.done:
			return s.Err()
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		before := heard
		s.mu.Lock()
		heard = w.heard
		s.mu.Unlock()
		if heard == before {
			s.fail(ErrTimeout)
			return ErrTimeout
		}
		timer.Reset(s.timeout)
	}
}
