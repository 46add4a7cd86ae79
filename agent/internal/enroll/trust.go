package enroll

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
)

// Trust says how to verify the portal before enrolment: with a file of CAs, with the SHA-256 fingerprint of
// a certificate, or, if neither is set, with the CAs that this machine trusts.
type Trust struct {
	CAFile      string
	Fingerprint string // hex, with or without colons
}

var errFingerprint = errors.New("none of its certificates has the given fingerprint")

// config returns the TLS configuration for connections to host. For every kind of Trust, the portal's
// certificate has to name host.
func (t Trust) config(host string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	switch {
	case t.CAFile != "":
		text, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s contains no certificate", t.CAFile)
		}
	case t.Fingerprint != "":
		wanted, err := ParseFingerprint(t.Fingerprint)
		if err != nil {
			return nil, err
		}
		c.InsecureSkipVerify = true // VerifyConnection verifies instead, with the root that has the fingerprint
		c.VerifyConnection = func(state tls.ConnectionState) error { return verifyBy(wanted, host, state) }
	}
	return c, nil
}

// ParseFingerprint parses a SHA-256 fingerprint in the notation of openssl x509 -fingerprint or sha256sum.
func ParseFingerprint(text string) ([]byte, error) {
	sum, err := hex.DecodeString(strings.ReplaceAll(text, ":", ""))
	if err != nil || len(sum) != sha256.Size {
		return nil, fmt.Errorf("%q is not a SHA-256 fingerprint, which has 64 hexadecimal digits", text)
	}
	return sum, nil
}

func verifyBy(wanted []byte, host string, state tls.ConnectionState) error {
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	known := false
	for _, each := range state.PeerCertificates {
		if sum := sha256.Sum256(each.Raw); bytes.Equal(sum[:], wanted) {
			roots.AddCert(each)
			known = true
		}
		between.AddCert(each)
	}
	if !known {
		return errFingerprint
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, DNSName: host,
	})
	return err
}

// explain adds to an error what the operator can do about a portal that is not trusted.
func (t Trust) explain(err error) error {
	if errors.Is(err, errFingerprint) {
		return fmt.Errorf("the portal is not trusted: %w (the token was not sent); compare it with the NOC's", errFingerprint)
	}
	if unknown, is := errors.AsType[x509.UnknownAuthorityError](err); is {
		return fmt.Errorf("the portal is not trusted (the token was not sent): %w; name its CA with -ca or -ca-fingerprint", unknown)
	}
	if verification, is := errors.AsType[*tls.CertificateVerificationError](err); is {
		return fmt.Errorf("the portal is not trusted (the token was not sent): %w", verification.Err)
	}
	return err
}
