package identity_test

import (
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"longline.dev/agent/internal/identity"
	"longline.dev/agent/internal/identity/identitytest"
)

func TestAListedCertificateIsRefusedAtItsNextRequest(t *testing.T) {
	ca := identitytest.New(t)
	portal, err := x509.ParseCertificate(ca.Pair("portal", identity.Portal).Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	fingerprint := identitytest.Fingerprint(portal)
	var pairs []string
	for at := 0; at < len(fingerprint); at += 2 {
		pairs = append(pairs, strings.ToUpper(fingerprint[at:at+2]))
	}
	other := strings.Repeat("ab", 32)
	paths := ca.Issue("rhino", identity.Router("rhino"))
	paths.Revoked = filepath.Join(t.TempDir(), "revoked")
	list := func(text string) {
		t.Helper()
		if err := os.WriteFile(paths.Revoked, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list("")
	files, err := identity.Load(paths, "rhino")
	if err != nil {
		t.Fatal(err)
	}
	for text, revoked := range map[string]bool{
		"":                  false,
		"# nothing yet\n\n": false,
		other + "\n":        false,
		fingerprint:         true,
		other + "\n  " + fingerprint + " # stolen\n": true,
		strings.Join(pairs, ":") + "\r\n":            true,
		"# " + fingerprint:                           false,
	} {
		list(text)
		if err := files.Valid(portal); errors.Is(err, identity.ErrRevoked) != revoked || !revoked && err != nil {
			t.Errorf("%q: got %v", text, err)
		}
	}
	for _, text := range []string{fingerprint[1:], fingerprint + "00", "SHA256:" + fingerprint, "AA:BB", fingerprint + "\nnot one"} {
		list(text)
		if err := files.Valid(portal); err == nil || errors.Is(err, identity.ErrRevoked) || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%q: got %v", text, err)
		}
		if _, err := identity.Load(paths, "rhino"); err == nil {
			t.Errorf("%q: the agent would start", text)
		}
	}
	if err := os.Remove(paths.Revoked); err != nil {
		t.Fatal(err)
	}
	if files.Valid(portal) == nil {
		t.Error("without its list nothing may be accepted")
	}
	if _, err := identity.Load(paths, "rhino"); err == nil {
		t.Error("the agent would start without its list")
	}
}

func TestTheAgentSendsNoReportsToARevokedPortal(t *testing.T) {
	ca := identitytest.New(t)
	pair := ca.Pair("portal", identity.Portal)
	portal, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	paths := ca.Issue("rhino", identity.Router("rhino"))
	paths.Revoked = filepath.Join(t.TempDir(), "revoked")
	if err := os.WriteFile(paths.Revoked, []byte(identitytest.Fingerprint(portal)), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := identity.Load(paths, "rhino")
	if err != nil {
		t.Fatal(err)
	}
	if err := reach(t, ca, files, pair); err == nil || !strings.Contains(err.Error(), identity.ErrRevoked.Error()) {
		t.Errorf("got %v", err)
	}
	if err := reach(t, ca, files, ca.Pair("portal", identity.Portal)); err != nil {
		t.Errorf("another certificate of the portal: %v", err)
	}
}
