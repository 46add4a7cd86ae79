// Package enroll obtains a router's certificate. The router makes a key and a certificate request, and
// sends them to the portal with a one-time token.
package enroll

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"longline.dev/agent/internal/config"
	"longline.dev/agent/internal/durable"
	"longline.dev/agent/internal/identity"
)

// Options names the router, its files, the portal and the token.
type Options struct {
	Router string
	Files  config.TLS // where key, certificate and CA are stored
	Portal string     // https URL of the portal's web address
	Trust  Trust
	Token  string
	Now    time.Time
}

// Enroll makes a key, requests a certificate for it from the portal, and stores key, certificate and CA with
// mode 0600: all of them or none. It returns the new certificate. Enroll keeps the key on disk until the
// certificate arrives. For the same token and key, the portal returns the same certificate. So after an
// interruption at any point, another call of Enroll with the same token completes the enrolment.
func Enroll(ctx context.Context, o Options) (*x509.Certificate, error) {
	if err := identity.Finish(o.Files); err != nil {
		return nil, err
	}
	for _, path := range []string{o.Files.CA, o.Files.Certificate, o.Files.Key} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
	}
	key, err := pendingKey(o.Files)
	if err != nil {
		return nil, err
	}
	request, err := identity.Request(o.Router, key)
	if err != nil {
		return nil, err
	}
	answer, err := post(ctx, o, request)
	if err != nil {
		return nil, err
	}
	certificate, err := identity.Usable([]byte(answer.CertificatePEM), []byte(answer.CAPEM), key.Public(), o.Router, o.Now)
	if err != nil {
		return nil, fmt.Errorf("the portal's response is not usable; nothing was stored: %w", err)
	}
	if err := identity.Install(o.Files, []byte(answer.CertificatePEM), []byte(answer.CAPEM)); err != nil {
		return nil, err
	}
	return certificate, nil
}

// Current returns the router's certificate if it exists, is complete and is valid now, otherwise nil.
func Current(files config.TLS, router string, now time.Time) *x509.Certificate {
	loaded, err := identity.Load(files, router)
	if err != nil {
		return nil
	}
	certificate, err := loaded.Certificate()
	if err != nil || now.Before(certificate.NotBefore) || now.After(certificate.NotAfter) {
		return nil
	}
	return certificate
}

// pendingKey returns the key that waits for its certificate. This is the key of an earlier, interrupted
// enrolment, or otherwise a new key.
func pendingKey(files config.TLS) (*ecdsa.PrivateKey, error) {
	path := identity.PendingKey(files)
	kept, err := os.ReadFile(path)
	switch {
	case err == nil:
		return parseKey(path, kept)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	// durable.Replace creates files with mode 0600.
	return key, durable.Replace(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func parseKey(path string, text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s is not a private key; remove it and enroll again", path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; remove it and enroll again", path, err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s is not an ECDSA key; remove it and enroll again", path)
	}
	return key, nil
}
