package server

import (
	"net"
	"net/http"
	"sync"
)

// connLimit bounds the connections of a listener. When there are too many, the one goes that has been silent for
// longest, since it came or since its last answer: whoever opens connections and keeps silent pushes out
// himself, and the portal, which speaks at once, still gets in.
type connLimit struct {
	limit int

	mu     sync.Mutex
	open   int
	silent map[net.Conn]uint64 // since when, in the order in which they fell silent
	events uint64
}

func newConnLimit(limit int) *connLimit {
	return &connLimit{limit: limit, silent: make(map[net.Conn]uint64)}
}

// watch is a http.Server's ConnState.
func (l *connLimit) watch(connection net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if excess := l.admit(connection); excess != nil {
			_ = excess.Close()
		}
	case http.StateActive:
		l.mu.Lock()
		delete(l.silent, connection)
		l.mu.Unlock()
	case http.StateIdle:
		l.mu.Lock()
		l.events++
		l.silent[connection] = l.events
		l.mu.Unlock()
	case http.StateClosed, http.StateHijacked:
		l.mu.Lock()
		delete(l.silent, connection)
		l.open--
		l.mu.Unlock()
	}
}

func (l *connLimit) admit(connection net.Conn) (excess net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open++
	l.events++
	l.silent[connection] = l.events
	if l.open <= l.limit {
		return nil
	}
	for candidate, at := range l.silent {
		if excess == nil || at < l.silent[excess] {
			excess = candidate
		}
	}
	delete(l.silent, excess) // so that the next one is another
	return excess
}
