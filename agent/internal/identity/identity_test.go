package identity_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"longline.dev/agent/internal/identity"
	"longline.dev/agent/internal/identity/identitytest"
)

func TestOnlyTheCertificateOfThisRouterIsLoaded(t *testing.T) {
	ca := identitytest.New(t)
	for name, c := range map[string]struct {
		roles []string
		ok    bool
	}{
		"this router":    {[]string{identity.Router("rhino")}, true},
		"another router": {[]string{identity.Router("hippo")}, false},
		"the portal":     {[]string{identity.Portal}, false},
		"two roles":      {[]string{identity.Router("rhino"), identity.Portal}, false},
		"no role":        {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := identity.Load(ca.Issue("own", c.roles...), "rhino"); (err == nil) != c.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTheAgentReportsOnlyToThePortal(t *testing.T) {
	ours, theirs := identitytest.New(t), identitytest.New(t)
	files, err := identity.Load(ours.Issue("rhino", identity.Router("rhino")), "rhino")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		server tls.Certificate
		wanted string
	}{
		"the portal":                   {ours.Pair("portal", identity.Portal), ""},
		"another router":               {ours.Pair("hippo", identity.Router("hippo")), "not the portal"},
		"a portal of an unknown CA":    {theirs.Pair("portal", identity.Portal), "unknown authority"},
		"a certificate without a role": {ours.Pair("nobody"), "not the portal"},
	} {
		t.Run(name, func(t *testing.T) {
			err := reach(t, ours, files, c.server)
			switch {
			case c.wanted == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.wanted != "" && (err == nil || !strings.Contains(err.Error(), c.wanted)):
				t.Errorf("got %v, want %q", err, c.wanted)
			}
		})
	}
}

// reach sends a request to a server with that certificate, as the agent does.
func reach(t *testing.T, ca *identitytest.CA, files *identity.Files, with tls.Certificate) error {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{with}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.Pool()}
	server.StartTLS()
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: files.Client()}}
	response, err := client.Get(server.URL)
	if err == nil {
		response.Body.Close()
	}
	return err
}
