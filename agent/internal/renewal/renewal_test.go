package renewal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"longline.dev/agent/internal/config"
	"longline.dev/agent/internal/identity"
	"longline.dev/agent/internal/identity/identitytest"
)

// portal answers as POST /api/agent/v1/certificate does.
type portal struct {
	received *request
	fresh    bool
	answer   func(*request) (*answer, error)
}

func (p *portal) Post(_ context.Context, kind string, sent, response any) error {
	if kind != "certificate" || !p.fresh {
		return fmt.Errorf("%s over a new connection: %v", kind, p.fresh)
	}
	p.fresh = false
	p.received = sent.(*request)
	got, err := p.answer(p.received)
	if err == nil {
		*response.(*answer) = *got
	}
	return err
}

func (p *portal) Reconnect() { p.fresh = true }

func renewer(t *testing.T) (*Renewer, *portal, *identitytest.CA, config.TLS) {
	t.Helper()
	ca := identitytest.New(t)
	files := ca.Issue("rhino", identity.Router("rhino"))
	p := &portal{answer: func(*request) (*answer, error) { return &answer{}, nil }}
	return &Renewer{Router: "rhino", Files: files, Portal: p, Log: slog.New(slog.DiscardHandler), Now: time.Now}, p, ca, files
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestACertificateThatIsDueIsReplacedAndTheKeyStays(t *testing.T) {
	r, p, ca, files := renewer(t)
	key, before := read(t, files.Key), read(t, files.Certificate)
	if err := os.WriteFile(identity.PendingKey(files), []byte("of an enrolment that did not end"), 0o600); err != nil {
		t.Fatal(err)
	}
	var made string
	p.answer = func(received *request) (*answer, error) {
		if made != "" {
			return &answer{}, nil
		}
		made = ca.Certify(received.CSRPEM, time.Now().Add(50*time.Minute), identity.Router("rhino"))
		return &answer{CertificatePEM: &made}, nil
	}
	if err := r.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	if read(t, files.Certificate) != made || made == before || read(t, files.Key) != key {
		t.Error("the certificate is not the new one, or the key another")
	}
	digest := sha256.Sum256([]byte(read(t, files.CA)))
	if p.received.CASHA256 != hex.EncodeToString(digest[:]) {
		t.Errorf("it sent %s for its CAs", p.received.CASHA256)
	}
	if _, err := identity.Load(files, "rhino"); err != nil {
		t.Error(err)
	}
}

func TestNewCAsAreStoredAndTheCertificateStays(t *testing.T) {
	r, p, ca, files := renewer(t)
	before, both := read(t, files.Certificate), string(ca.PEM())+string(identitytest.New(t).PEM())
	digest := sha256.Sum256([]byte(both))
	p.answer = func(received *request) (*answer, error) {
		if received.CASHA256 == hex.EncodeToString(digest[:]) {
			return &answer{}, nil
		}
		return &answer{CAPEM: &both}, nil
	}
	if err := r.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.received.CASHA256 != hex.EncodeToString(digest[:]) {
		t.Error("the portal does not hear that it has them")
	}
	if read(t, files.CA) != both || read(t, files.Certificate) != before {
		t.Error("the CAs are not the new ones, or the certificate another")
	}
}

func TestACertificateEnrolledMeanwhileStays(t *testing.T) {
	r, p, ca, files := renewer(t)
	p.answer = func(received *request) (*answer, error) {
		other := ca.Issue("other", identity.Router("rhino"))
		for from, to := range map[string]string{other.Certificate: files.Certificate, other.Key: files.Key} {
			if err := os.Rename(from, to); err != nil {
				return nil, err
			}
		}
		made := ca.Certify(received.CSRPEM, time.Now().Add(time.Hour), identity.Router("rhino"))
		return &answer{CertificatePEM: &made}, nil
	}
	if err := r.Once(t.Context()); err == nil || !strings.Contains(err.Error(), "replaced meanwhile") {
		t.Error(err)
	}
	if _, err := identity.Load(files, "rhino"); err != nil {
		t.Error(err)
	}
}

func TestAnUnusableCertificateIsNotStored(t *testing.T) {
	r, p, ca, files := renewer(t)
	before := read(t, files.Certificate) + read(t, files.CA)
	another := identitytest.New(t)
	strangers := string(another.PEM())
	for why, respond := range map[string]func(*request) (*answer, error){
		"another key": func(*request) (*answer, error) {
			text := read(t, ca.Issue("other", identity.Router("rhino")).Certificate)
			return &answer{CertificatePEM: &text}, nil
		},
		"not for": func(received *request) (*answer, error) {
			text := ca.Certify(received.CSRPEM, time.Now().Add(time.Hour), identity.Router("hippo"))
			return &answer{CertificatePEM: &text}, nil
		},
		"unknown authority": func(received *request) (*answer, error) {
			text := another.Certify(received.CSRPEM, time.Now().Add(time.Hour), identity.Router("rhino"))
			return &answer{CertificatePEM: &text}, nil
		},
		"certificate signed by": func(*request) (*answer, error) { return &answer{CAPEM: &strangers}, nil },
		"away":                  func(*request) (*answer, error) { return nil, errors.New("the portal is away") },
	} {
		p.answer = respond
		if err := r.Once(t.Context()); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
		if read(t, files.Certificate)+read(t, files.CA) != before {
			t.Errorf("%s: it was stored", why)
		}
	}
}
