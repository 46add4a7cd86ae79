package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"longline.dev/agent/internal/identity"
)

// brief has timeouts that are short enough for a test. patience limits how long a test waits for an
// expected event.
var brief = Timeouts{Header: 200 * time.Millisecond, Read: 300 * time.Millisecond, Write: time.Minute, Idle: time.Minute}

const patience = 20 * time.Second

func (d *door) dial(t *testing.T, config *tls.Config) net.Conn {
	t.Helper()
	address := strings.TrimPrefix(d.url, "https://")
	var connection net.Conn
	var err error
	if config == nil {
		connection, err = net.Dial("tcp", address)
	} else {
		connection, err = tls.Dial("tcp", address, config)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	if err := connection.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return connection
}

func (d *door) portal() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{d.ca.Pair("portal", identity.Portal)}}
}

// hungUp waits until the other side closes the connection.
func hungUp(t *testing.T, connection net.Conn) {
	t.Helper()
	if _, err := io.Copy(io.Discard, connection); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection was kept")
	}
}

func TestAnExpiredCertificateIsNotServed(t *testing.T) {
	d := open(t, &engine{})
	client := d.as(d.ca.PairUntil("late", time.Now().Add(-time.Minute), identity.Portal))
	if response, err := client.Get(d.url + "/healthz"); err == nil {
		response.Body.Close()
		t.Errorf("served with status %d", response.StatusCode)
	}
}

func TestACertificateThatExpiresOnAnOpenConnectionIsRefused(t *testing.T) {
	uri, err := url.Parse(identity.Portal)
	if err != nil {
		t.Fatal(err)
	}
	s := New("rhino", "0.1.0", &engine{}, nil, nil)
	for until, status := range map[time.Duration]int{time.Minute: http.StatusOK, -time.Second: http.StatusForbidden} {
		certificate := &x509.Certificate{URIs: []*url.URL{uri}, NotAfter: time.Now().Add(until)}
		request := httptest.NewRequest(http.MethodGet, "/healthz", nil)
		request.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{certificate}}}
		recorder := httptest.NewRecorder()
		s.Handler().ServeHTTP(recorder, request)
		if recorder.Code != status {
			t.Errorf("valid for %s: got %d, want %d", until, recorder.Code, status)
		}
	}
}

func TestAConnectionWithAWrongRoleIsClosed(t *testing.T) {
	d := open(t, &engine{})
	connection := d.dial(t, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{d.ca.Pair("hippo", identity.Router("hippo"))}})
	fmt.Fprint(connection, "PUT /v1/intent HTTP/1.1\r\nHost: agent\r\nContent-Length: 1000000\r\n\r\n")
	answer, _ := io.ReadAll(connection) // ends when the agent closes the connection
	if !bytes.Contains(answer, []byte("403 Forbidden")) {
		t.Errorf("got %q", answer)
	}
}

// flood is a request body that counts how many of its bytes were read.
type flood struct {
	left int
	sent atomic.Int64
}

func (f *flood) Read(p []byte) (int, error) {
	n := min(len(p), f.left)
	if n == 0 {
		return 0, io.EOF
	}
	for i := range p[:n] {
		p[i] = ' '
	}
	f.left -= n
	f.sent.Add(int64(n))
	return n, nil
}

func TestABodyAnnouncedAsTooLargeIsRefusedUnread(t *testing.T) {
	e := &engine{}
	d := open(t, e)
	connection := d.dial(t, d.portal())
	fmt.Fprintf(connection, "PUT /v1/intent HTTP/1.1\r\nHost: agent\r\nContent-Length: %d\r\n\r\n", 64<<20)
	response, err := http.ReadResponse(bufio.NewReader(connection), nil) // no byte of the body was sent
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusRequestEntityTooLarge || e.puts != 0 {
		t.Errorf("got %d", response.StatusCode)
	}
}

func TestABodyOfUnknownLengthIsReadOnlyUpToTheLimit(t *testing.T) {
	e := &engine{}
	d := open(t, e)
	body := &flood{left: 256 << 20}
	request, err := http.NewRequest(http.MethodPost, d.url+"/v1/plan", body)
	if err != nil {
		t.Fatal(err)
	}
	response, err := d.client.Do(request)
	if err == nil { // the reset that ends the upload may lose the response
		response.Body.Close()
		if response.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("got %d", response.StatusCode)
		}
	}
	d.client.CloseIdleConnections()
	if sent := body.sent.Load(); sent > 2*MaxBody {
		t.Errorf("%d bytes were taken", sent)
	}
}

func TestDeepJSONIsRefused(t *testing.T) {
	e := &engine{}
	d := open(t, e)
	for name, body := range map[string]string{
		"arrays":  strings.Repeat("[", 1_000_000),
		"objects": strings.Repeat(`{"a":`, 1_000_000),
		"closed":  `{"schema": ` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`,
		"number":  `{"generation": ` + strings.Repeat("9", 1_000_000) + `}`,
	} {
		if status, answer := d.do("PUT", "/v1/intent", []byte(body)); status != 400 && status != 422 {
			t.Errorf("%s: got %d %v", name, status, answer)
		}
	}
	if e.puts != 0 {
		t.Error("the engine received a request")
	}
}

func TestConnectionsOfSlowClientsAreClosed(t *testing.T) {
	e := &engine{}
	d := openFor(t, e, brief)
	t.Run("no handshake", func(t *testing.T) { hungUp(t, d.dial(t, nil)) })
	t.Run("headers", func(t *testing.T) {
		connection := d.dial(t, d.portal())
		fmt.Fprint(connection, "GET /healthz HTTP/1.1\r\nHost: agent\r\nX-Slow: ")
		hungUp(t, connection)
	})
	t.Run("body", func(t *testing.T) {
		connection := d.dial(t, d.portal())
		fmt.Fprint(connection, "PUT /v1/intent HTTP/1.1\r\nHost: agent\r\nContent-Length: 100\r\n\r\n{")
		answer, err := io.ReadAll(connection)
		if errors.Is(err, os.ErrDeadlineExceeded) || len(answer) > 0 && !bytes.Contains(answer, []byte("408 Request Timeout")) {
			t.Errorf("got %q, %v", answer, err)
		}
	})
	if e.puts != 0 {
		t.Error("the engine received a request")
	}
}

func TestLongHeadersAreRefused(t *testing.T) {
	d := open(t, &engine{})
	request, err := http.NewRequest(http.MethodGet, d.url+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Long", strings.Repeat("x", 1<<20))
	response, err := d.client.Do(request)
	if err != nil {
		return // the server closed the connection during the upload
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("got %d", response.StatusCode)
	}
}

func TestTwoHundredRequestsAtOnceAreAllAnswered(t *testing.T) {
	// Two hundred handshakes share this machine's CPU with their clients. This test checks no time limit.
	d := openFor(t, &engine{}, Timeouts{Header: time.Minute, Read: time.Minute, Write: time.Minute, Idle: time.Minute})
	certificate := d.ca.Pair("portal", identity.Portal)
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			client := d.as(certificate)
			defer client.CloseIdleConnections()
			response, err := client.Get(d.url + "/v1/state")
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			if response.StatusCode != http.StatusOK {
				t.Errorf("got %d", response.StatusCode)
			}
		})
	}
	all.Wait()
}

func TestManySilentConnectionsDoNotBlockThePortal(t *testing.T) {
	d := openFor(t, &engine{}, Timeouts{Header: time.Minute, Read: time.Minute, Write: time.Minute, Idle: time.Minute})
	first := d.dial(t, nil)
	for range maxClients + 20 {
		d.dial(t, nil)
	}
	if status, _ := d.do("GET", "/healthz", nil); status != http.StatusOK {
		t.Errorf("the portal got %d", status)
	}
	hungUp(t, first)
}

func TestConnectionsThatBecameSilentAreClosedForNewOnes(t *testing.T) {
	crowd := newConnLimit(2)
	arrive := func() net.Conn {
		local, remote := net.Pipe()
		t.Cleanup(func() { local.Close(); remote.Close() })
		crowd.watch(local, http.StateNew)
		return local
	}
	answered := func(c net.Conn) {
		crowd.watch(c, http.StateActive)
		crowd.watch(c, http.StateIdle)
	}
	first, second := arrive(), arrive()
	answered(second)
	answered(first)
	third := arrive()
	if !closed(second) {
		t.Error("who has been silent for longest is still there")
	}
	crowd.watch(second, http.StateClosed)
	for _, c := range []net.Conn{first, third} {
		if closed(c) {
			t.Error("another connection was closed")
		}
	}
}

// closed reports whether this side has called Close.
func closed(c net.Conn) bool { return errors.Is(c.SetDeadline(time.Time{}), io.ErrClosedPipe) }

func TestHTTP2IsNotSupported(t *testing.T) {
	d := open(t, &engine{})
	d.client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	response, err := d.client.Get(d.url + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.ProtoMajor != 1 {
		t.Errorf("spoke %s", response.Proto)
	}
}

// TestLongWorkKeepsNoBodyInMemory: a trace may take half a minute, and the agent must accept an intent
// meanwhile.
func TestLongWorkKeepsNoBodyInMemory(t *testing.T) {
	e := &engine{err: errors.New("done")}
	s := New("rhino", "0.1.0", e, nil, slog.New(slog.DiscardHandler))
	s.QueryPortal = knows
	worked := 0
	e.working = func() {
		worked++
		if used := len(s.bodySlots); used != 0 {
			t.Errorf("%d bodies are in memory", used)
		}
	}
	for path, body := range map[string]string{"/v1/trace": `{"schema":1,"of":"cheese","packets":1,"seconds":1}`, "/v1/calibration": `{"schema":1,"beside_lines":false}`} {
		s.ControlHandler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
	}
	if worked != 2 {
		t.Errorf("worked on %d of 2", worked)
	}
}

func TestBodiesWaitForEachOther(t *testing.T) {
	s := New("rhino", "0.1.0", &engine{}, nil, nil)
	for range maxBodies {
		s.bodySlots <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	request := httptest.NewRequest(http.MethodPost, "/v1/plan", strings.NewReader("{}")).WithContext(ctx)
	s.takeBody(httptest.NewRecorder(), request, func([]byte) { t.Error("a body too many was read") })
	<-s.bodySlots
	read := false
	s.takeBody(httptest.NewRecorder(), request.WithContext(t.Context()), func([]byte) { read = true })
	if !read {
		t.Error("the next body was not read")
	}
}
