package identity

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net/url"
)

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
