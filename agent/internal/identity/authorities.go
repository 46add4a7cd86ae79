package identity

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
)

// authorities are the CAs in a file. The file is read again for each handshake, so that a new CA applies
// without a restart. If the file cannot be read, the CAs do not change, and the error is logged once.
type authorities struct {
	path string

	mu     sync.Mutex
	text   []byte
	pool   *x509.CertPool
	logged string
}

// read returns true if the file has changed. If the file is not valid, read returns an error and does not
// change the CAs.
func (a *authorities) read() (changed bool, err error) {
	text, err := os.ReadFile(a.path)
	if err != nil {
		return false, fmt.Errorf("identity: %w", err)
	}
	if a.pool != nil && bytes.Equal(text, a.text) {
		return false, nil
	}
	pool, err := parseAuthorities(text)
	if err != nil {
		return false, fmt.Errorf("identity: %s: %w", a.path, err)
	}
	a.text, a.pool = text, pool
	return true, nil
}

func (a *authorities) now(log *slog.Logger) *x509.CertPool {
	a.mu.Lock()
	defer a.mu.Unlock()
	changed, err := a.read()
	switch {
	case err != nil && err.Error() != a.logged:
		a.logged = err.Error()
		log.Error("the CA's file cannot be used; the CAs read before stay in use", "error", err)
	case err == nil:
		a.logged = ""
	}
	if changed {
		log.Info("the CA has changed", "file", a.path)
	}
	return a.pool
}

// parseAuthorities parses the whole file, or returns an error. For example, a file that is just being written
// may end inside a certificate.
func parseAuthorities(text []byte) (*x509.CertPool, error) {
	pool, found := x509.NewCertPool(), 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		pool.AddCert(certificate)
		found++
	}
	switch begun := bytes.Count(text, []byte("-----BEGIN ")); {
	case found == 0:
		return nil, errors.New("it contains no certificate")
	case found < begun:
		return nil, errors.New("a certificate in it is cut off")
	}
	return pool, nil
}

// ErrRevoked says that a certificate is in the list of revoked certificates.
var ErrRevoked = errors.New("identity: the certificate has been revoked")

// Valid returns an error for a certificate that tls.revoked lists. While the list cannot be read, Valid
// refuses every certificate, because the loss of the file must not make a stolen key valid again. Each call
// reads the list again.
func (f *Files) Valid(certificate *x509.Certificate) error {
	if f.paths.Revoked == "" {
		return nil
	}
	list, err := os.ReadFile(f.paths.Revoked)
	if err != nil {
		return fmt.Errorf("identity: the list of revoked certificates: %w", err)
	}
	fingerprints, err := parseFingerprints(list)
	if err != nil {
		return fmt.Errorf("identity: %s: %w", f.paths.Revoked, err)
	}
	if fingerprints[sha256.Sum256(certificate.Raw)] {
		return ErrRevoked
	}
	return nil
}

func parseFingerprints(list []byte) (map[[sha256.Size]byte]bool, error) {
	found := make(map[[sha256.Size]byte]bool)
	lines := bufio.NewScanner(bytes.NewReader(list))
	for number := 1; lines.Scan(); number++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		text = strings.ReplaceAll(strings.TrimSpace(text), ":", "")
		if text == "" {
			continue
		}
		fingerprint, err := hex.DecodeString(text)
		if err != nil || len(fingerprint) != sha256.Size {
			return nil, fmt.Errorf("line %d is not a SHA-256 fingerprint (64 hexadecimal digits, colons allowed)", number)
		}
		found[[sha256.Size]byte(fingerprint)] = true
	}
	return found, lines.Err()
}
