package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"longline.dev/agent/internal/identity"
	"longline.dev/agent/internal/identity/identitytest"
)

// newcomer starts a portal that issues a certificate to a router without one. It returns the portal, the
// common command-line options, and the number of requests received.
func newcomer(t *testing.T) (*httptest.Server, []string, *int) {
	t.Helper()
	folder, ca, requests := t.TempDir(), identitytest.New(t), new(int)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*requests++
		body := make(map[string]string)
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body["token"] != "lle_once" {
			t.Errorf("got %v, %v", body, err)
		}
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]string{
			"router": "rhino", "ca_pem": string(ca.PEM()),
			"certificate_pem": ca.Certify(body["csr_pem"], time.Now().Add(time.Hour), identity.Router("rhino")),
		})
	}))
	t.Cleanup(server.Close)
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config := write("agent.yaml", "router: rhino\nlisten: 127.0.0.1:9443\nstate_dir: state\n"+
		"tls: {ca: tls/ca.pem, certificate: tls/router.pem, key: tls/router.key}\n")
	return server, []string{"enroll", "-config", config, "-token-file", write("token", "lle_once\n")}, requests
}

func fingerprint(server *httptest.Server) string {
	return identitytest.Fingerprint(server.Certificate())
}

func TestTheEnrollCommandGetsACertificateOnce(t *testing.T) {
	portal, line, requests := newcomer(t)
	line = append(line, "-portal", portal.URL, "-ca-fingerprint", fingerprint(portal))
	out, err := invoke(t, line...)
	if err != nil {
		t.Fatal(err)
	}
	wants(t, out, "rhino is enrolled until ", "tls/router.key")
	again, err := invoke(t, line...)
	if err != nil || *requests != 1 {
		t.Fatalf("%d requests, %v", *requests, err)
	}
	wants(t, again, "rhino has a certificate until ", "nothing was done")
	if _, err := invoke(t, append(line, "-replace")...); err != nil || *requests != 2 {
		t.Fatalf("%d requests, %v", *requests, err)
	}
}

func TestEnrollWithInvalidOptionsSendsNoRequest(t *testing.T) {
	portal, line, requests := newcomer(t)
	for name, more := range map[string][]string{
		"no portal":        {},
		"plain HTTP":       {"-portal", "http://portal.example.net"},
		"no host":          {"-portal", "https://"},
		"two trusts":       {"-portal", portal.URL, "-ca", "ca.pem", "-ca-fingerprint", fingerprint(portal)},
		"half a print":     {"-portal", portal.URL, "-ca-fingerprint", "ab:cd"},
		"a token in words": {"-portal", portal.URL, "lle_once"},
	} {
		t.Run(name, func(t *testing.T) {
			var usage *usageError
			if _, err := invoke(t, append(line, more...)...); !errors.As(err, &usage) {
				t.Errorf("got %v", err)
			}
		})
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := invoke(t, append(line, "-token-file", empty, "-portal", portal.URL)...); err == nil {
		t.Error("enrolled without a token")
	}
	if *requests != 0 {
		t.Errorf("%d requests", *requests)
	}
}

func TestATokenIsReadFromAStandardInputThatCannotBeOpenedAgain(t *testing.T) {
	replaceStandardInput(t, "the-token\n")
	token, err := readToken(standardInput)
	if err != nil || token != "the-token" {
		t.Errorf("got %q, %v", token, err)
	}
}
