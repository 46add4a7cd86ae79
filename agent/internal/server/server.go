// Package server is the agent's HTTPS door for the portal; the wire contract is docs/agent-api.md.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/identity"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/plan"
)

// Engine is what the server needs of the engine.
type Engine interface {
	Put(context.Context, *intent.Intent) (*converge.Outcome, error)
	Look(context.Context, *intent.Intent) (*plan.Plan, *observe.Snapshot, error)
	Status() converge.Status
	Ready() error
}

// MaxBody is the largest accepted body (bytes).
const MaxBody = 32 << 20

// A slow client gets this long for its headers, its body, and to take its answer; the last includes the
// time that earlier converges take.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = time.Minute
	writeTimeout  = 5 * time.Minute
	idleTimeout   = 2 * time.Minute
	maxHeader     = 16 << 10
	stopTimeout   = 10 * time.Second
)

// Server answers the portal.
type Server struct {
	router, version string
	engine          Engine
	metrics         prometheus.Gatherer
	log             *slog.Logger
}

// New makes a server for the named router.
func New(router, version string, engine Engine, metrics prometheus.Gatherer, log *slog.Logger) *Server {
	return &Server{router: router, version: version, engine: engine, metrics: metrics, log: log}
}

// Serve accepts connections until ctx ends, then lets running requests finish for at most 10 s.
func (s *Server) Serve(ctx context.Context, listener net.Listener, config *tls.Config) error {
	server := &http.Server{
		Handler:           s.Handler(),
		TLSConfig:         config,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader,
		ErrorLog:       slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		stopped <- server.Shutdown(ctx)
	})
	defer stop()
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return <-stopped
}

// Handler is all doors behind the check of the role.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/v1/intent", only(http.MethodPut, s.putIntent))
	mux.Handle("/v1/plan", only(http.MethodPost, s.postPlan))
	mux.Handle("/v1/state", only(http.MethodGet, func(w http.ResponseWriter, r *http.Request) { writeJSON(w, s.stateOf(r.Context())) }))
	mux.Handle("/metrics", only(http.MethodGet, promhttp.HandlerFor(s.metrics, promhttp.HandlerOpts{}).ServeHTTP))
	mux.Handle("/healthz", only(http.MethodGet, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }))
	mux.Handle("/readyz", only(http.MethodGet, s.getReady))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		problem{Type: "not-found", Title: "Not found", Status: http.StatusNotFound, Detail: "there is nothing at this path"}.write(w)
	})
	return portalOnly(mux)
}

// portalOnly refuses every role but the portal's, before anything of the body is read.
func portalOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		role := ""
		if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
			role = identity.RoleOf(r.TLS.VerifiedChains[0][0])
		}
		if role != identity.Portal {
			problem{Type: "wrong-role", Title: "Not the portal", Status: http.StatusForbidden,
				Detail: fmt.Sprintf("the client certificate names %q, and only %q is served", role, identity.Portal)}.write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func only(method string, next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != method {
			w.Header().Set("Allow", method)
			problem{Type: "method-not-allowed", Title: "Method not allowed", Status: http.StatusMethodNotAllowed,
				Detail: "this path takes " + method}.write(w)
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
