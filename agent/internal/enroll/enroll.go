// Package enroll obtains a router's certificate. The router makes a key and a certificate request, and
// sends them to the portal with a one-time token.
package enroll

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
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

const (
	// timeout limits the whole exchange.
	timeout = 30 * time.Second
	// maxAnswer exceeds the size of two certificates by far (bytes).
	maxAnswer = 1 << 20
)

// answer is the portal's response to POST /api/v1/enroll (docs/openapi.yaml).
type answer struct {
	Router         string `json:"router"`
	CertificatePEM string `json:"certificate_pem"`
	CAPEM          string `json:"ca_pem"`
}

func post(ctx context.Context, o Options, request []byte) (*answer, error) {
	body, err := json.Marshal(map[string]string{"token": o.Token, "csr_pem": string(request), "router": o.Router})
	if err != nil {
		return nil, err
	}
	address := strings.TrimSuffix(o.Portal, "/") + "/api/v1/enroll"
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	post.Header.Set("Content-Type", "application/json")
	trust, err := o.Trust.config(post.URL.Hostname())
	if err != nil {
		return nil, err
	}
	client := &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: trust, DisableKeepAlives: true,
		},
		// The token is for the named portal only: do not follow redirects.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(post)
	if err != nil {
		return nil, o.Trust.explain(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusCreated {
		return nil, refusal(address, response.StatusCode, text)
	}
	a := new(answer)
	if err := json.Unmarshal(text, a); err != nil {
		return nil, fmt.Errorf("%s is not the portal: its response is not JSON", address)
	}
	return a, nil
}

// refusal returns a problem document (RFC 9457) as an error.
func refusal(address string, status int, text []byte) error {
	var problem struct {
		Type, Title, Detail string
		Errors              []struct{ Detail string }
	}
	if err := json.Unmarshal(text, &problem); err != nil || problem.Type == "" {
		return fmt.Errorf("%s answered with status %d: is this the portal's URL?", address, status)
	}
	why := problem.Detail
	for _, each := range problem.Errors {
		if each.Detail != "" && each.Detail != problem.Detail {
			why += " " + each.Detail
		}
	}
	return errors.New("the portal refused: " + why)
}

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
