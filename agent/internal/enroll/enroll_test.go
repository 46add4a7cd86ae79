package enroll_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"longline.dev/agent/internal/config"
	"longline.dev/agent/internal/enroll"
	"longline.dev/agent/internal/identity"
	"longline.dev/agent/internal/identity/identitytest"
)

const token = "lle_once"

// portal answers as POST /api/v1/enroll does: a token works once, and again for a request with the same
// key.
type portal struct {
	*httptest.Server
	ca, door *identitytest.CA
	role     string    // role in the certificate
	until    time.Time // end of the certificate's validity
	answer   http.HandlerFunc
	requests []map[string]string
}

func newPortal(t *testing.T) *portal {
	t.Helper()
	p := &portal{
		ca: identitytest.New(t), door: identitytest.New(t), role: identity.Router("rhino"), until: time.Now().Add(time.Hour),
	}
	p.answer = p.certify
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make(map[string]string)
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/api/v1/enroll" {
			t.Errorf("%s: %v", r.URL, err)
		}
		p.requests = append(p.requests, body)
		p.answer(w, r)
	}))
	pair := p.door.Pair("door")
	p.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	p.StartTLS()
	t.Cleanup(p.Close)
	return p
}

func (p *portal) certify(w http.ResponseWriter, _ *http.Request) {
	request := p.requests[len(p.requests)-1]
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]string{
		"router": "rhino", "ca_pem": string(p.ca.PEM()), "certificate_pem": p.ca.Certify(request["csr_pem"], p.until, p.role),
	})
}

func (p *portal) options(t *testing.T) enroll.Options {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "tls")
	trusted := filepath.Join(t.TempDir(), "door-ca.pem")
	if err := os.WriteFile(trusted, p.door.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	return enroll.Options{
		Router: "rhino", Portal: p.URL, Token: token, Now: time.Now(), Trust: enroll.Trust{CAFile: trusted},
		Files: config.TLS{
			CA: filepath.Join(folder, "ca.pem"), Certificate: filepath.Join(folder, "router.pem"), Key: filepath.Join(folder, "router.key"),
		},
	}
}

// left lists the files in the folder of the certificate, by name.
func left(t *testing.T, o enroll.Options) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(o.Files.Key))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, each := range entries {
		info, err := each.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", each.Name(), info.Mode(), err)
		}
		names = append(names, each.Name())
	}
	return strings.Join(names, " ")
}

func TestEnrollingStoresTheLocalKeyWithItsCertificateAndTheCA(t *testing.T) {
	p := newPortal(t)
	o := p.options(t)
	certificate, err := enroll.Enroll(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := left(t, o); got != "ca.pem router.key router.pem" {
		t.Errorf("left: %s", got)
	}
	if _, err := identity.Load(o.Files, "rhino"); err != nil {
		t.Fatal(err)
	}
	if current := enroll.Current(o.Files, "rhino", o.Now); current == nil || !current.Equal(certificate) {
		t.Errorf("current: %v", current)
	}
	sent := p.requests[0]
	if sent["token"] != token || sent["router"] != "rhino" || strings.Contains(sent["csr_pem"], "PRIVATE") {
		t.Errorf("sent %v", sent)
	}
}

func TestALostResponseIsRequestedAgainWithTheSameKey(t *testing.T) {
	p := newPortal(t)
	o := p.options(t)
	p.answer = func(w http.ResponseWriter, _ *http.Request) { // the connection breaks after the token was used
		panic(http.ErrAbortHandler)
	}
	if _, err := enroll.Enroll(t.Context(), o); err == nil {
		t.Fatal("enrolled by nothing")
	}
	if got := left(t, o); got != "router.key.new" {
		t.Errorf("left: %s", got)
	}
	key, err := os.ReadFile(o.Files.Key + ".new")
	if err != nil {
		t.Fatal(err)
	}
	p.answer = p.certify
	if _, err := enroll.Enroll(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(o.Files.Key); err != nil || !bytes.Equal(got, key) {
		t.Errorf("another key, or none: %v", err)
	}
}

func TestARefusalByThePortalIsQuotedAndStoresNothing(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"a used token": {422, `{"type": "https://portal.example.net/api/docs/errors/#enrolment-used", "title": "t", "status": 422,
			"detail": "This enrolment token of rhino has been used.", "errors": [{"field": "token", "detail": "This enrolment token of rhino has been used."}]}`,
			"the portal refused: This enrolment token of rhino has been used."},
		"two reasons": {422, `{"type": "urn:x", "detail": "Not valid.", "errors": [{"detail": "Too long."}]}`, "Not valid. Too long."},
		"no portal":   {404, `<html>`, "/api/v1/enroll answered with status 404: is this the portal's URL?"},
		"a redirect":  {302, ``, "answered with status 302"},
		"no JSON":     {201, `<html>`, "its response is not JSON"},
		"empty":       {201, `{}`, "it contains no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPortal(t)
			p.answer = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}
			o := p.options(t)
			if _, err := enroll.Enroll(t.Context(), o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			if got := left(t, o); got != "router.key.new" {
				t.Errorf("left: %s", got)
			}
		})
	}
}

func TestACertificateThatIsNotForThisKeyAndRouterIsNotStored(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*portal)
		want   string
	}{
		"another router": {func(p *portal) { p.role = identity.Router("hippo") }, `is for "spiffe://longline/router/hippo"`},
		"expired":        {func(p *portal) { p.until = time.Now().Add(-time.Minute) }, "this machine's clock shows"},
		"another CA": {func(p *portal) {
			certify, other := p.answer, identitytest.New(t)
			p.answer = func(w http.ResponseWriter, r *http.Request) {
				good := httptest.NewRecorder()
				certify(good, r)
				w.WriteHeader(http.StatusCreated)
				body := make(map[string]string)
				_ = json.Unmarshal(good.Body.Bytes(), &body)
				body["ca_pem"] = string(other.PEM())
				_ = json.NewEncoder(w).Encode(body)
			}
		}, "certificate signed by unknown authority"},
		"another key": {func(p *portal) {
			pem, _ := os.ReadFile(p.ca.Issue("thief", identity.Router("rhino")).Certificate)
			p.answer = func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusCreated)
				_ = json.NewEncoder(w).Encode(map[string]string{"ca_pem": string(p.ca.PEM()), "certificate_pem": string(pem)})
			}
		}, "for another key"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPortal(t)
			c.change(p)
			o := p.options(t)
			if _, err := enroll.Enroll(t.Context(), o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			if got := left(t, o); got != "router.key.new" {
				t.Errorf("left: %s", got)
			}
		})
	}
}

func TestNoTokenIsSentToAnUntrustedPortal(t *testing.T) {
	otherCA := identitytest.New(t)
	other := filepath.Join(t.TempDir(), "other.pem")
	if err := os.WriteFile(other, otherCA.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		trust enroll.Trust
		want  string
	}{
		"this machine's CAs":  {enroll.Trust{}, "name its CA with -ca or -ca-fingerprint"},
		"another CA":          {enroll.Trust{CAFile: other}, "not trusted (the token was not sent)"},
		"another fingerprint": {enroll.Trust{Fingerprint: strings.Repeat("ab", 32)}, "none of its certificates has the given fingerprint"},
		"no fingerprint":      {enroll.Trust{Fingerprint: "abcd"}, "64 hexadecimal digits"},
		"no file":             {enroll.Trust{CAFile: "/nowhere"}, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPortal(t)
			o := p.options(t)
			o.Trust = c.trust
			if _, err := enroll.Enroll(t.Context(), o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			if len(p.requests) != 0 {
				t.Errorf("sent %v", p.requests)
			}
		})
	}
}

func TestAFingerprintIsTrustedForTheNameOfThePortalOnly(t *testing.T) {
	p := newPortal(t)
	o := p.options(t)
	o.Trust = enroll.Trust{Fingerprint: strings.ToUpper(identitytest.Fingerprint(p.Certificate()))}
	if _, err := enroll.Enroll(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	o.Portal = strings.Replace(o.Portal, "127.0.0.1", "localhost", 1) // a name that the certificate does not contain
	if _, err := enroll.Enroll(t.Context(), o); err == nil || !strings.Contains(err.Error(), "localhost") {
		t.Errorf("got %v", err)
	}
}

func TestTheFingerprintOfACASentByThePortalIsAccepted(t *testing.T) {
	p := newPortal(t)
	ca := p.door.Certificate()
	p.TLS.Certificates[0].Certificate = append(p.TLS.Certificates[0].Certificate, ca.Raw)
	o := p.options(t)
	o.Trust = enroll.Trust{Fingerprint: identitytest.Fingerprint(ca)}
	if _, err := enroll.Enroll(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}
