package server

import (
	"net"
	"net/http"
	"sync"
)

// crowd bounds the connections of a listener. When there are too many, the one goes that has been silent for
// longest, since it came or since its last answer: whoever opens connections and keeps silent pushes out
// himself, and the portal, which speaks at once, still gets in.
type crowd struct {
	limit int

	mu      sync.Mutex
	members int
	silent  map[net.Conn]uint64 // since when, in the order in which they fell silent
	arrived uint64
}

func newCrowd(limit int) *crowd {
	return &crowd{limit: limit, silent: make(map[net.Conn]uint64)}
}

// watch is a http.Server's ConnState.
func (c *crowd) watch(connection net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if excess := c.enter(connection); excess != nil {
			_ = excess.Close()
		}
	case http.StateActive:
		c.mu.Lock()
		delete(c.silent, connection)
		c.mu.Unlock()
	case http.StateIdle:
		c.mu.Lock()
		c.arrived++
		c.silent[connection] = c.arrived
		c.mu.Unlock()
	case http.StateClosed, http.StateHijacked:
		c.mu.Lock()
		delete(c.silent, connection)
		c.members--
		c.mu.Unlock()
	}
}

func (c *crowd) enter(connection net.Conn) (excess net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members++
	c.arrived++
	c.silent[connection] = c.arrived
	if c.members <= c.limit {
		return nil
	}
	for candidate, at := range c.silent {
		if excess == nil || at < c.silent[excess] {
			excess = candidate
		}
	}
	delete(c.silent, excess) // so that the next one is another
	return excess
}
