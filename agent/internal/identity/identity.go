// Package identity defines who may connect to whom: roles are URI names in certificates under one CA.
package identity

import (
	"bufio"
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"longline.dev/agent/internal/config"
	"longline.dev/agent/internal/durable"
)

// Portal is the portal's role.
const Portal = "spiffe://longline/portal"

// Router returns the role of a router.
func Router(name string) string { return "spiffe://longline/router/" + name }

// RoleOf returns the only URI name of a certificate, or "" if there is none or more than one (SPIFFE
// X.509-SVID section 2 requires exactly one).
func RoleOf(certificate *x509.Certificate) string {
	if len(certificate.URIs) != 1 {
		return ""
	}
	return certificate.URIs[0].String()
}

// Files are a router's own certificate and the CA. Both are read again for each handshake, so that renewed
// files apply without a restart.
type Files struct {
	// Log receives a message when a CA has changed or cannot be read. Set it before the first connection.
	Log *slog.Logger

	paths       config.TLS
	authorities *authorities
}

// Load reads the files and checks that the certificate is the router's. It first completes an Install that
// was interrupted.
func Load(paths config.TLS, router string) (*Files, error) {
	if err := Finish(paths); err != nil {
		return nil, err
	}
	trusted := &authorities{path: paths.CA}
	if _, err := trusted.read(); err != nil {
		return nil, err
	}
	f := &Files{Log: slog.New(slog.DiscardHandler), paths: paths, authorities: trusted}
	own, err := f.own()
	if err != nil {
		return nil, err
	}
	if role := RoleOf(own.Leaf); role != Router(router) {
		return nil, fmt.Errorf("identity: %s is for %q and not for %q", paths.Certificate, role, Router(router))
	}
	if err := f.Valid(own.Leaf); err != nil && !errors.Is(err, ErrRevoked) {
		return nil, err
	}
	return f, nil
}

// Certificate returns the router's own certificate as it is on disk now.
func (f *Files) Certificate() (*x509.Certificate, error) {
	own, err := f.own()
	if err != nil {
		return nil, err
	}
	return own.Leaf, nil
}

func (f *Files) own() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(f.paths.Certificate, f.paths.Key)
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	return &pair, nil
}

// Server returns the TLS configuration of the listener: TLS 1.3, with a client certificate from the CA. The
// TLS configuration does not check the client's role. The server checks the role for each request, so that a
// client with a wrong role gets a response.
func (f *Files) Server() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{
			MinVersion:     tls.VersionTLS13,
			ClientAuth:     tls.RequireAndVerifyClientCert,
			ClientCAs:      f.authorities.now(f.Log),
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.own() },
		}, nil
	}}
}

// Client returns the TLS configuration for connections to the portal. The portal is identified by its role
// and not by its host name. Two checks therefore replace the usual verification: first the chain to the CA,
// then the role.
func (f *Files) Client() *tls.Config {
	return &tls.Config{
		MinVersion:           tls.VersionTLS13,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return f.own() },
		InsecureSkipVerify:   true, // VerifyConnection verifies instead
		VerifyConnection:     f.verifyPortal,
	}
}

func (f *Files) verifyPortal(state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("identity: the peer has no certificate")
	}
	leaf, between := state.PeerCertificates[0], x509.NewCertPool()
	for _, c := range state.PeerCertificates[1:] {
		between.AddCert(c)
	}
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: f.authorities.now(f.Log), Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	if role := RoleOf(leaf); role != Portal {
		return fmt.Errorf("identity: the peer is %q and not the portal", role)
	}
	return f.Valid(leaf)
}

// Usable returns the certificate in a PEM text. The certificate must be valid now, signed by one of the CAs,
// and issued for this router and this key. Otherwise Usable returns an error.
func Usable(certificate, authorities []byte, key crypto.PublicKey, router string, now time.Time) (*x509.Certificate, error) {
	block, _ := pem.Decode(certificate)
	if block == nil {
		return nil, errors.New("it contains no certificate")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	if own, ok := leaf.PublicKey.(interface{ Equal(crypto.PublicKey) bool }); !ok || !own.Equal(key) {
		return nil, errors.New("the certificate is for another key")
	}
	if role := RoleOf(leaf); role != Router(router) {
		return nil, fmt.Errorf("the certificate is for %q and not for %q", role, Router(router))
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authorities) {
		return nil, errors.New("it contains no CA")
	}
	_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		return nil, fmt.Errorf("%w (this machine's clock shows %s)", err, now.UTC().Format(time.RFC3339))
	}
	return leaf, nil
}

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

// pending returns the path where a file waits until all files of a set are written.
func pending(path string) string { return path + ".new" }

// PendingKey returns the path of the private key while its certificate is being requested.
func PendingKey(paths config.TLS) string { return pending(paths.Key) }

// Written returns all files that an enrolment or a renewal writes.
func Written(paths config.TLS) []string {
	var files []string
	for _, path := range []string{paths.Key, paths.Certificate, paths.CA} {
		files = append(files, path, pending(path))
	}
	return files
}

// Install replaces the certificate and the CA by the given certificate and CA, and the key by the pending
// key. It replaces all three files or none, even if the process crashes. The pending certificate is written
// last and renamed last. So while the pending certificate exists, the other pending files are complete, and
// Finish can complete the installation.
func Install(paths config.TLS, certificate, ca []byte) error {
	if err := durable.Replace(pending(paths.CA), ca); err != nil {
		return err
	}
	if err := durable.Replace(pending(paths.Certificate), certificate); err != nil {
		return err
	}
	return Finish(paths)
}

// Finish completes an interrupted Install. If no Install was interrupted, it does nothing.
func Finish(paths config.TLS) error {
	if _, err := os.Stat(pending(paths.Certificate)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, path := range []string{paths.CA, paths.Key, paths.Certificate} {
		err := os.Rename(pending(path), path)
		if errors.Is(err, fs.ErrNotExist) && path != paths.Certificate {
			continue // renamed before the interruption
		}
		if err != nil {
			return fmt.Errorf("identity: finish storing a new certificate: %w", err)
		}
		if err := durable.SyncFolder(filepath.Dir(path)); err != nil {
			return fmt.Errorf("identity: finish storing a new certificate: %w", err)
		}
	}
	return nil
}

// Request returns a PKCS #10 request (RFC 2986) for a router's certificate, in PEM. The portal uses only the
// key in the request. The names are for people who read the request.
func Request(router string, key crypto.PrivateKey) ([]byte, error) {
	role, err := url.Parse(Router(router))
	if err != nil {
		return nil, err
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "router-" + router}, URIs: []*url.URL{role}}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}
