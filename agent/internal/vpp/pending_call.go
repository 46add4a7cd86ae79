package vpp

import (
	"context"
	"time"
)

// pendingCall is a call that waits for replies. Each reply shows that VPP is alive, but only the last
// necessary reply wakes the waiting goroutine. With thousands of replies, a wake-up for each reply would take
// longer than the replies themselves. All fields except the channel are protected by the session's lock.
type pendingCall struct {
	received int  // number of replies received
	until    int  // number of replies to wait for, 0 for all
	over     bool // the last reply has arrived

	enough chan struct{} // receives a token when enough replies have arrived
}

func newPendingCall() *pendingCall { return &pendingCall{enough: make(chan struct{}, 1)} }

// noteAnswer counts a reply. last means that no other reply follows.
func (p *pendingCall) noteAnswer(last bool) {
	p.received++
	p.over = p.over || last
	if p.received == p.until || p.over {
		select {
		case p.enough <- struct{}{}:
		default:
		}
	}
}

// await waits until the given number of replies has arrived since the call began. If until is 0, await waits
// for the last reply. If no reply arrives for longer than the session's timeout, await ends the session and
// returns ErrTimeout, at the latest after twice the timeout.
func (s *Session) await(ctx context.Context, p *pendingCall, until int) error {
	s.mu.Lock()
	p.until = until
	received, enough := p.received, p.over || until > 0 && p.received >= until
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
		before := received
		s.mu.Lock()
		received = p.received
		s.mu.Unlock()
		if received == before {
			s.fail(ErrTimeout)
			return ErrTimeout
		}
		timer.Reset(s.timeout)
	}
}
