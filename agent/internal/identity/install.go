package identity

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"longline.dev/agent/internal/config"
	"longline.dev/agent/internal/durable"
)

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
