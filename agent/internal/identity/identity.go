// Package identity defines who may connect to whom: roles are URI names in certificates under one CA.
package identity

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"longline.dev/agent/internal/config"
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
