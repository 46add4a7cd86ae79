// Package server provides the agent's HTTPS API for the portal (docs/reference/agent-api.md).
package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/freeze"
	"longline.dev/agent/internal/identity"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/packettrace"
	"longline.dev/agent/internal/plan"
	"longline.dev/agent/internal/roundtrip"
	"longline.dev/agent/internal/statseg"
)

// Engine has the methods that the server needs to observe and change VPP.
type Engine interface {
	Put(ctx context.Context, in *intent.Intent, acknowledged string) (*converge.Outcome, error)
	Plan(context.Context, *intent.Intent) (*plan.Plan, *observe.Snapshot, error)
	Claim(ctx context.Context, end intent.Key, name string) ([]*plan.EndInterface, error)
	Release(ctx context.Context, end intent.Key, name string) ([]*plan.EndInterface, error)
	SendTestFrames(context.Context, *intent.TestFrames) (*converge.TestResult, error)
	MeasureRoundTrip(context.Context, *intent.RoundTrip) (*roundtrip.Times, error)
	FreezeHere(reason string, until time.Time) (*freeze.Freeze, error)
	Unfreeze() error
	Calibrate(ctx context.Context, withLines bool) (*converge.Calibrated, error)
	Trace(ctx context.Context, vll string, packets int, most time.Duration) (*packettrace.Result, error)
	RebuildVLAN(end intent.Key) error
	Status() converge.Status
	Ready() error
}

// Server serves the portal, the commands of operators on this machine, and Prometheus.
type Server struct {
	router, version string
	intents         *intent.Decoder
	engine          Engine
	metrics         prometheus.Gatherer
	log             *slog.Logger
	timeouts        Timeouts
	bodySlots       chan struct{} // one token for each body in memory

	// QueryPortal posts a request to the portal and decodes the response; set it before Serve.
	QueryPortal func(ctx context.Context, kind string, request, response any) error
	// Counters reads the stats segment of the VPP that started at bootMS. It is nil if no stats segment is used.
	// Set it before Serve.
	Counters func(bootMS int64) (statseg.Reading, error)
	// Finished is closed when the engine has ended all its work. When their context has ended, Serve,
	// ServeControl and ServeMetrics let running requests finish until stopTimeout after Finished was closed.
	// If Finished is nil, the work counts as ended. Set it before Serve.
	Finished <-chan struct{}
	// Valid returns an error for a certificate that the server refuses although the CA signed it. Set it
	// before Serve.
	Valid func(*x509.Certificate) error
}

var errNoPortal = errors.New("report.url names no portal")

// New returns a server for the named router.
func New(router, version string, engine Engine, metrics prometheus.Gatherer, log *slog.Logger) *Server {
	return &Server{
		router: router, version: version, intents: intent.NewDecoder(router), engine: engine, metrics: metrics, log: log,
		timeouts: usualTimeouts, bodySlots: make(chan struct{}, maxBodies), Valid: func(*x509.Certificate) error { return nil },
		QueryPortal: func(context.Context, string, any, any) error { return errNoPortal },
	}
}

// Handler serves all endpoints of the portal, after checking the client's role.
func (s *Server) Handler() http.Handler {
	mux := s.readingRoutes()
	mux.Handle("/v1/intent", only(http.MethodPut, takes(s, s.decode, s.putIntent)))
	mux.Handle("/v1/test-frames", only(http.MethodPost, takes(s, testDecoder(intent.DecodeTestFrames), s.sendTestFrames)))
	mux.Handle("/v1/round-trips", only(http.MethodPost, takes(s, testDecoder(intent.DecodeRoundTrip), s.measureRoundTrip)))
	mux.Handle("/v1/rebuild", only(http.MethodPost, takes(s, decodeDecision, s.rebuild)))
	return s.portalOnly(mux)
}

// ControlHandler serves the commands that an operator runs on this machine. They change nothing, with these
// exceptions: a claim or a release of relabelled interfaces (about which the portal cannot decide), a
// calibration, a trace, a rebuild, and the start or end of a freeze.
func (s *Server) ControlHandler() http.Handler {
	mux := s.readingRoutes()
	mux.Handle("/v1/claim", only(http.MethodPost, takes(s, decodeDecision, s.claimOrRelease(s.engine.Claim))))
	mux.Handle("/v1/release", only(http.MethodPost, takes(s, decodeDecision, s.claimOrRelease(s.engine.Release))))
	mux.Handle("/v1/calibration", only(http.MethodPost, takes(s, decodeCalibration, s.calibrate)))
	mux.Handle("/v1/rebuild", only(http.MethodPost, takes(s, decodeDecision, s.rebuild)))
	mux.Handle("/v1/line", only(http.MethodGet, responds(s.line)))
	mux.Handle("/v1/vppcfg", only(http.MethodGet, responds(s.vppcfg)))
	mux.Handle("/v1/trace", only(http.MethodPost, takes(s, decodeTrace, s.trace)))
	mux.Handle("/v1/freeze", only(http.MethodPost, takes(s, decodeFreeze, s.freeze)))
	mux.Handle("/v1/unfreeze", only(http.MethodPost, takes(s, ignoreBody, s.unfreeze)))
	return mux
}

// MetricsHandler serves the endpoints for Prometheus and load balancers.
func (s *Server) MetricsHandler() http.Handler { return s.healthRoutes() }

func (s *Server) readingRoutes() *http.ServeMux {
	mux := s.healthRoutes()
	mux.Handle("/v1/plan", only(http.MethodPost, takes(s, s.decode, s.plan)))
	mux.Handle("/v1/state", only(http.MethodGet, func(w http.ResponseWriter, r *http.Request) { writeJSON(w, s.stateOf(r.Context())) }))
	return mux
}

func (s *Server) healthRoutes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("/metrics", only(http.MethodGet, promhttp.HandlerFor(s.metrics, promhttp.HandlerOpts{}).ServeHTTP))
	mux.Handle("/healthz", only(http.MethodGet, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }))
	mux.Handle("/readyz", only(http.MethodGet, s.getReady))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { notFound(w) })
	return mux
}

// portalOnly refuses every client whose certificate does not name the portal, before it reads the body.
func (s *Server) portalOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refusal := s.refusal(r.TLS); refusal != nil {
			w.Header().Set("Connection", "close") // the client has nothing more to request
			refusal.write(w)
			return
		}
		if r.RequestURI == "*" { // ServeMux would answer this request itself, without a body
			notFound(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refusal returns the reason why the client is not served, or nil if it is served. It checks the certificate
// for each request, because the handshake checked it only when the connection was opened, which may be long
// ago.
func (s *Server) refusal(state *tls.ConnectionState) *problem {
	role := ""
	if state != nil && len(state.VerifiedChains) > 0 {
		certificate := state.VerifiedChains[0][0]
		role = identity.RoleOf(certificate)
		if time.Now().After(certificate.NotAfter) {
			return &problem{Type: "wrong-role", Title: "An expired certificate", Status: http.StatusForbidden,
				Detail: "the client certificate has expired since this connection was opened"}
		}
		if err := s.Valid(certificate); err != nil {
			s.log.Warn("certificate refused", "role", role, "serial", certificate.SerialNumber.Text(16), "error", err)
			return &problem{Type: "wrong-role", Title: "A certificate that is not accepted", Status: http.StatusForbidden, Detail: err.Error()}
		}
	}
	if role != identity.Portal {
		return &problem{Type: "wrong-role", Title: "Not the portal", Status: http.StatusForbidden,
			Detail: fmt.Sprintf("the client certificate names %q, and only %q is served", role, identity.Portal)}
	}
	return nil
}

func notFound(w http.ResponseWriter) {
	problem{Type: "not-found", Title: "Not found", Status: http.StatusNotFound, Detail: "there is nothing at this path"}.write(w)
}

func only(method string, next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != method {
			w.Header().Set("Allow", method)
			problem{Type: "method-not-allowed", Title: "Method not allowed", Status: http.StatusMethodNotAllowed,
				Detail: "this path accepts " + method}.write(w)
			return
		}
		next(w, r)
	})
}

func (s *Server) getReady(w http.ResponseWriter, _ *http.Request) {
	if err := s.engine.Ready(); err != nil {
		problem{Type: "not-ready", Title: "Not ready", Status: http.StatusServiceUnavailable, Detail: err.Error()}.write(w)
		return
	}
	_, _ = io.WriteString(w, "ready\n")
}

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
