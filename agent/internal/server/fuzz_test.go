package server

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/identity"
	"longline.dev/agent/internal/intent"
)

// FuzzEveryRequestGetsAValidResponse sends any method, path and body, from the portal and from others. The
// response has to follow the contract, a refusal has to be a problem document, and only a decoded intent
// may reach the engine.
func FuzzEveryRequestGetsAValidResponse(f *testing.F) {
	documents, err := filepath.Glob("../../../tests/contract/intents/*/*.json")
	if err != nil || len(documents) == 0 {
		f.Fatal(err, documents)
	}
	for _, path := range documents {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(http.MethodPut, "/v1/intent", data, true)
		f.Add(http.MethodPost, "/v1/plan", data, true)
	}
	f.Add(http.MethodPut, "/v1/intent", bytes.Repeat([]byte("["), 1000), true)
	f.Add(http.MethodPut, "/v1/intent", []byte("{}"), false)
	f.Add(http.MethodPost, "/v1/test-frames", []byte(testFrames), true)
	f.Add(http.MethodPost, "/v1/test-frames", []byte(testFrames), false)
	f.Add(http.MethodPost, "/v1/test-frames", []byte("{}"), true)
	for _, path := range []string{"/v1/state", "/metrics", "/healthz", "/readyz", "/v1/../v1/intent", "//v1/intent", "/%00", "*"} {
		f.Add(http.MethodGet, path, []byte(nil), true)
	}
	portal, err := url.Parse(identity.Portal)
	if err != nil {
		f.Fatal(err)
	}
	e := &engine{outcome: &converge.Outcome{Applied: true}, result: &converge.TestResult{}}
	handler := New("rhino", "0.1.0", e, prometheus.NewRegistry(), slog.New(slog.NewTextHandler(io.Discard, nil))).Handler()
	f.Fuzz(func(t *testing.T, method, path string, body []byte, isPortal bool) {
		address, err := url.ParseRequestURI(path)
		if err != nil || method == "" {
			return // net/http refuses these before it calls the handler
		}
		certificate := &x509.Certificate{NotAfter: time.Now().Add(time.Hour)}
		if isPortal {
			certificate.URIs = []*url.URL{portal}
		}
		request := httptest.NewRequest(http.MethodPut, "/", bytes.NewReader(body))
		request.Method, request.URL, request.RequestURI = method, address, path
		request.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{certificate}}}
		answer := httptest.NewRecorder()
		puts := e.puts
		e.requested = nil
		handler.ServeHTTP(answer, request)
		if _, err := intent.Decode(body, "rhino"); e.puts != puts && (err != nil || !isPortal) {
			t.Errorf("handed on to the engine: %q", body)
		}
		if _, err := intent.DecodeTestFrames(body); e.requested != nil && (err != nil || !isPortal) {
			t.Errorf("frames were sent for %q", body)
		}
		switch {
		case !isPortal && answer.Code != http.StatusForbidden:
			t.Errorf("a stranger got %d", answer.Code)
		case answer.Code >= 400:
			var p struct {
				Type   string
				Status int
			}
			if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil && path != "/metrics" || p.Status != answer.Code || p.Type == "" {
				t.Errorf("%d with %q", answer.Code, answer.Body)
			}
		}
	})
}
