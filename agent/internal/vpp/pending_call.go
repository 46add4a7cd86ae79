package vpp

import (
	"context"
	"time"
)

// pendingCall is a call that waits for answers. Each is a sign of life, but only the one that makes enough wakes it:
// with thousands of answers, waking for each takes longer than the answers do. All but its channel is used with the
// session locked.
type pendingCall struct {
	heard int  // answers
	until int  // so many are enough, 0 for the last
	over  bool // the last has come

	enough chan struct{} // a token once there is enough
}

func newPendingCall() *pendingCall { return &pendingCall{enough: make(chan struct{}, 1)} }

// noteAnswer counts an answer; last says that no other follows.
func (p *pendingCall) noteAnswer(last bool) {
	p.heard++
	p.over = p.over || last
	if p.heard == p.until || p.over {
		select {
		case p.enough <- struct{}{}:
		default:
		}
	}
}

// await waits until so many answers have come since the call began, or with 0 until the last has. Silence for longer than the timeout
// ends the session, at the latest after twice as long.
func (s *Session) await(ctx context.Context, p *pendingCall, until int) error {
	s.mu.Lock()
	p.until = until
	heard, enough := p.heard, p.over || until > 0 && p.heard >= until
	s.mu.Unlock()
	if enough {
		return nil
	}
	timer := time.NewTimer(s.timeout)
	defer timer.Stop()
	for {
		select {
		case <-p.enough:
			return nil
		case <-s.done:
			return s.Err()
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		before := heard
		s.mu.Lock()
		heard = p.heard
		s.mu.Unlock()
		if heard == before {
			s.fail(ErrTimeout)
			return ErrTimeout
		}
		timer.Reset(s.timeout)
	}
}
