package server

import (
	"net"
	"net/http"
	"sync"
)

// connLimit limits the number of connections of a listener. If there are more connections, it closes the
// connection that has been silent for the longest time since it was opened or since its last response. So a
// client that opens many silent connections displaces its own connections. The portal sends a request
// immediately after it has connected, so it can still connect.
type connLimit struct {
	limit int

	mu     sync.Mutex
	open   int
	silent map[net.Conn]uint64 // the number of the event after which each connection became silent; it is larger for later events
	events uint64
}

func newConnLimit(limit int) *connLimit {
	return &connLimit{limit: limit, silent: make(map[net.Conn]uint64)}
}

// watch is the ConnState callback of an http.Server.
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
	delete(l.silent, excess) // so that the next call of admit selects another connection
	return excess
}
