package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"
)

// Timeouts apply to each client. Write includes the time for which a request waits for earlier converges.
type Timeouts struct {
	Header, Read, Write, Idle time.Duration
}

// usualTimeouts leave enough time for a portal, but limit clients that are too slow. Header includes the TLS
// handshake.
var usualTimeouts = Timeouts{Header: 5 * time.Second, Read: time.Minute, Write: 5 * time.Minute, Idle: 2 * time.Minute}

const (
	maxHeader  = 16 << 10 // bytes
	maxClients = 256
	// stopTimeout is the longest time for writing responses after the work is done.
	stopTimeout = 5 * time.Second
)

// Serve serves the portal over TLS until ctx ends. Then it accepts no further requests, and lets running
// requests finish. They must finish within stopTimeout after Finished is closed.
func (s *Server) Serve(ctx context.Context, listener net.Listener, config *tls.Config) error {
	return s.serve(ctx, listener, config, s.Handler())
}

// ServeControl serves the commands that an operator runs on this machine, over a Unix socket
// (docs/reference/agent-requests.md).
func (s *Server) ServeControl(ctx context.Context, listener net.Listener) error {
	return s.serve(ctx, listener, nil, s.ControlHandler())
}

// ServeMetrics serves Prometheus over plain HTTP.
func (s *Server) ServeMetrics(ctx context.Context, listener net.Listener) error {
	return s.serve(ctx, listener, nil, s.MetricsHandler())
}

func (s *Server) serve(ctx context.Context, listener net.Listener, config *tls.Config, handler http.Handler) error {
	// Allow HTTP/1.1 only. With HTTP/1.1, a connection carries one request at a time, so the limit on
	// connections also limits requests.
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	server := &http.Server{
		Handler: handler, TLSConfig: config, Protocols: &protocols,
		ReadHeaderTimeout: s.timeouts.Header, ReadTimeout: s.timeouts.Read,
		WriteTimeout: s.timeouts.Write, IdleTimeout: s.timeouts.Idle,
		MaxHeaderBytes: maxHeader, ConnState: newConnLimit(maxClients).watch,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go s.endAfterWork(ctx, cancel)
		stopped <- server.Shutdown(ctx)
	})
	defer stop()
	serve := func() error { return server.Serve(listener) }
	if config != nil {
		serve = func() error { return server.ServeTLS(listener, "", "") }
	}
	if err := serve(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return <-stopped
}

// endAfterWork waits until the engine has finished, then waits for stopTimeout, then calls cancel. If ctx
// ends earlier, it does not call cancel.
func (s *Server) endAfterWork(ctx context.Context, cancel context.CancelFunc) {
	if s.Finished != nil {
		select {
		case <-s.Finished:
		case <-ctx.Done():
		}
	}
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-timer.C:
		cancel()
	case <-ctx.Done():
	}
}

// ListenControl opens the control socket, which only the agent's user and root may use. It replaces a socket
// that an earlier agent left behind. The caller must have locked the state folder. This lock shows that the
// earlier agent has ended.
//
// ListenControl changes the process's umask for a short time. Call it before other goroutines create files.
func ListenControl(ctx context.Context, path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == os.ModeSocket {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("control socket: %w", err)
		}
	}
	before := syscall.Umask(0o177)
	defer syscall.Umask(before)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return listener, nil
}

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
