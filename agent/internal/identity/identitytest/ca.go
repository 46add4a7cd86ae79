// Package identitytest provides a CA and certificates for tests.
package identitytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"longline.dev/agent/internal/config"
)

// CA signs certificates and has its own folder.
type CA struct {
	t           testing.TB
	folder      string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	serial      int64
}

// New creates a CA.
func New(t testing.TB) *CA {
	t.Helper()
	ca := &CA{t: t, folder: t.TempDir(), key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &ca.key.PublicKey, ca.key)
	if err != nil {
		t.Fatal(err)
	}
	if ca.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	ca.write("ca.pem", "CERTIFICATE", der)
	return ca
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (ca *CA) write(name, kind string, der []byte) string {
	ca.t.Helper()
	path := filepath.Join(ca.folder, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		ca.t.Fatal(err)
	}
	return path
}

// Issue creates a certificate with the URI names and returns its files.
func (ca *CA) Issue(name string, roles ...string) config.TLS {
	ca.t.Helper()
	return ca.issue(name, time.Now().Add(time.Hour), roles)
}

// PairUntil returns a key pair whose certificate is valid until the given time.
func (ca *CA) PairUntil(name string, until time.Time, roles ...string) tls.Certificate {
	ca.t.Helper()
	return ca.load(ca.issue(name, until, roles))
}

func (ca *CA) issue(name string, until time.Time, roles []string) config.TLS {
	ca.t.Helper()
	key := newKey(ca.t)
	der := ca.sign(name, until, roles, &key.PublicKey)
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		ca.t.Fatal(err)
	}
	return config.TLS{
		CA: filepath.Join(ca.folder, "ca.pem"), Certificate: ca.write(name+".pem", "CERTIFICATE", der),
		Key: ca.write(name+".key", "EC PRIVATE KEY", keyDER),
	}
}

// Certify signs a PEM request (PKCS #10). It returns a PEM certificate with these roles and the address
// 127.0.0.1.
func (ca *CA) Certify(request string, until time.Time, roles ...string) string {
	ca.t.Helper()
	block, _ := pem.Decode([]byte(request))
	if block == nil {
		ca.t.Fatalf("%q is no request", request)
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err == nil {
		err = parsed.CheckSignature()
	}
	if err != nil {
		ca.t.Fatal(err)
	}
	der := ca.sign("certified", until, roles, parsed.PublicKey)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// Certificate returns the CA's own certificate.
func (ca *CA) Certificate() *x509.Certificate { return ca.certificate }

// PEM returns the CA's own certificate in PEM.
func (ca *CA) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.certificate.Raw})
}

func (ca *CA) sign(name string, until time.Time, roles []string, key any) []byte {
	ca.t.Helper()
	ca.serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(ca.serial + 1), Subject: pkix.Name{CommonName: name},
		NotBefore: until.Add(-2 * time.Hour), NotAfter: until, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, role := range roles {
		uri, err := url.Parse(role)
		if err != nil {
			ca.t.Fatal(err)
		}
		template.URIs = append(template.URIs, uri)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.certificate, key, ca.key)
	if err != nil {
		ca.t.Fatal(err)
	}
	return der
}

// Pair returns a key pair with a new certificate.
func (ca *CA) Pair(name string, roles ...string) tls.Certificate {
	ca.t.Helper()
	return ca.load(ca.Issue(name, roles...))
}

func (ca *CA) load(files config.TLS) tls.Certificate {
	ca.t.Helper()
	pair, err := tls.LoadX509KeyPair(files.Certificate, files.Key)
	if err != nil {
		ca.t.Fatal(err)
	}
	return pair
}

// Pool returns a pool that contains this CA only.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.certificate)
	return pool
}

// Fingerprint returns the SHA-256 of a certificate, in hex.
func Fingerprint(certificate *x509.Certificate) string {
	sum := sha256.Sum256(certificate.Raw)
	return hex.EncodeToString(sum[:])
}
