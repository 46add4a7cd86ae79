package identity_test

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"longline.dev/agent/internal/config"
	"longline.dev/agent/internal/identity"
	"longline.dev/agent/internal/identity/identitytest"
)

// aRouter returns an agent with the CA. The caller may replace the CA's file.
func aRouter(t *testing.T, ca *identitytest.CA) (paths config.TLS, files *identity.Files, logs *bytes.Buffer) {
	t.Helper()
	paths = ca.Issue("rhino", identity.Router("rhino"))
	files, err := identity.Load(paths, "rhino")
	if err != nil {
		t.Fatal(err)
	}
	logs = new(bytes.Buffer)
	files.Log = slog.New(slog.NewTextHandler(logs, nil))
	return paths, files, logs
}

func replace(t *testing.T, path string, by ...string) {
	t.Helper()
	var all []byte
	for _, each := range by {
		text, err := os.ReadFile(each)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	if err := os.WriteFile(path, all, 0o600); err != nil {
		t.Fatal(err)
	}
}

// calls sends a request to the agent's own listener with the given certificate. The connection may be
// resumed from cache.
func calls(t *testing.T, url string, with tls.Certificate, cache tls.ClientSessionCache) error {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, Certificates: []tls.Certificate{with}, ClientSessionCache: cache,
	}}}
	defer client.CloseIdleConnections()
	response, err := client.Get(url)
	if err == nil {
		response.Body.Close()
	}
	return err
}

func TestANewCAAppliesWithoutARestart(t *testing.T) {
	before, after := identitytest.New(t), identitytest.New(t)
	paths, files, logs := aRouter(t, before)
	old := tls.NewLRUClientSessionCache(1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = files.Server()
	server.StartTLS()
	defer server.Close()
	both := func(test string, ca *identitytest.CA, cache tls.ClientSessionCache, wanted bool) {
		t.Helper()
		portal := ca.Pair("portal", identity.Portal)
		if err := calls(t, server.URL, portal, cache); (err == nil) != wanted {
			t.Errorf("%s: a portal that calls: %v", test, err)
		}
		if err := reach(t, before, files, portal); (err == nil) != wanted {
			t.Errorf("%s: a portal that is reported to: %v", test, err)
		}
	}
	both("the first CA", before, old, true)
	both("an unknown CA", after, nil, false)
	first := before.Issue("copy", identity.Router("rhino")).CA
	kept := paths.CA + ".kept"
	replace(t, kept, first)
	replace(t, paths.CA, kept, after.Issue("copy", identity.Router("rhino")).CA)
	both("both CAs, the first", before, old, true)
	both("both CAs, the second", after, nil, true)
	replace(t, paths.CA, after.Issue("copy", identity.Router("rhino")).CA)
	both("the second CA", after, nil, true)
	both("the CA of before, on a resumed connection", before, old, false)
	if changes := strings.Count(logs.String(), "the CA has changed"); changes != 2 {
		t.Errorf("%d changes were logged:\n%s", changes, logs)
	}
}

func TestAnUnreadableCAChangesNothingAndIsLoggedOnce(t *testing.T) {
	for name, broken := range map[string]func(string) error{
		"empty":   func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"cut off": func(path string) error { return os.WriteFile(path, []byte("-----BEGIN CERTIFICATE-----\nMII"), 0o600) },
		"cut off amid the second": func(path string) error {
			whole, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, append(whole, whole[:len(whole)/2]...), 0o600)
		},
		"not there": os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			ca := identitytest.New(t)
			paths, files, logs := aRouter(t, ca)
			text, err := os.ReadFile(paths.CA)
			if err != nil {
				t.Fatal(err)
			}
			if err := broken(paths.CA); err != nil {
				t.Fatal(err)
			}
			portal := ca.Pair("portal", identity.Portal)
			for range 3 {
				if err := reach(t, ca, files, portal); err != nil {
					t.Errorf("the CA of before: %v", err)
				}
			}
			if logged := strings.Count(logs.String(), "level=ERROR"); logged != 1 {
				t.Errorf("logged %d times:\n%s", logged, logs)
			}
			if err := os.WriteFile(paths.CA, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := reach(t, ca, files, portal); err != nil {
				t.Errorf("mended: %v", err)
			}
		})
	}
}
