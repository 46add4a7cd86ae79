package identity

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

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
