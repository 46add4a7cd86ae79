// Package renewal keeps a router's certificate and its CAs up to date. Every hour the agent requests a new
// certificate and new CAs from the portal, over a connection that uses the current certificate. The portal
// decides whether the agent gets them. The key stays the same.
package renewal

import (
	"cmp"
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"time"

	"longline.dev/agent/internal/config"
	"longline.dev/agent/internal/durable"
	"longline.dev/agent/internal/identity"
	"longline.dev/agent/internal/report"
)

const (
	// Every is the mean interval between requests. It varies by a quarter, so that a thousand agents do not
	// send requests at once.
	Every = time.Hour
	// first is the pause before the first request of an agent that has just started.
	first = 5 * time.Second
	// If the certificate expires within the time soon, a failed renewal is logged as an error instead of a
	// warning.
	soon = 21 * 24 * time.Hour
)

// Portal accepts the requests. After Reconnect it uses a new connection.
type Portal interface {
	report.Poster
	Reconnect()
}

var errOther = errors.New("it is another one")

// Renewer renews the certificate of one router.
type Renewer struct {
	Router string
	Files  config.TLS
	Portal Portal
	Log    *slog.Logger
	Now    func() time.Time
}

type request struct {
	Schema   int    `json:"schema"`
	CSRPEM   string `json:"csr_pem"`
	CASHA256 string `json:"ca_sha256"`
}

type answer struct {
	CertificatePEM *string `json:"certificate_pem"` // nil if the current certificate is still good
	CAPEM          *string `json:"ca_pem"`          // nil if the current CAs are still good
}

// Run requests renewals until ctx ends.
func (r *Renewer) Run(ctx context.Context) {
	wait := first
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if err := r.Once(ctx); err != nil && ctx.Err() == nil {
			r.complain(err)
		}
		wait = Every*3/4 + mathrand.N(Every/2)
	}
}

// complain logs a failed renewal. The level is higher if the certificate expires soon.
func (r *Renewer) complain(err error) {
	level, ends := slog.LevelWarn, ""
	if own, loadErr := tls.LoadX509KeyPair(r.Files.Certificate, r.Files.Key); loadErr == nil {
		ends = own.Leaf.NotAfter.UTC().Format(time.RFC3339)
		if own.Leaf.NotAfter.Sub(r.Now()) < soon {
			level = slog.LevelError
		}
	}
	r.Log.Log(context.Background(), level, "the certificate and the CAs could not be checked; the agent asks the portal again in an hour", "ends", ends, "error", err)
}

// Once sends a request. If Once stored something new from the response, it sends another request, so that the
// portal sees immediately that the new certificate is in use.
func (r *Renewer) Once(ctx context.Context) error {
	for range 2 {
		r.Portal.Reconnect()
		if came, err := r.renew(ctx); err != nil || !came {
			return err
		}
	}
	return nil
}

// renew requests and stores a new certificate and new CAs. It leaves a key that waits for its certificate
// (identity.PendingKey) to the enrolment that made the key. The new files need no restart, because each TLS
// handshake reads them again.
func (r *Renewer) renew(ctx context.Context) (came bool, err error) {
	own, err := tls.LoadX509KeyPair(r.Files.Certificate, r.Files.Key)
	if err != nil {
		return false, err
	}
	trusted, err := os.ReadFile(r.Files.CA)
	if err != nil {
		return false, err
	}
	requested, err := r.request(own.PrivateKey, trusted)
	if err != nil {
		return false, err
	}
	var response answer
	if err := r.Portal.Post(ctx, "certificate", requested, &response); err != nil {
		return false, err
	}
	if response.CertificatePEM == nil && response.CAPEM == nil {
		return false, nil
	}
	certificate, err := os.ReadFile(r.Files.Certificate)
	if err != nil {
		return false, err
	}
	if response.CertificatePEM != nil {
		certificate = []byte(*response.CertificatePEM)
	}
	if response.CAPEM != nil {
		trusted = []byte(*response.CAPEM)
	}
	leaf, err := identity.Usable(certificate, trusted, own.Leaf.PublicKey, r.Router, r.Now())
	if err != nil {
		return false, fmt.Errorf("the portal's response is not usable; nothing was stored: %w", err)
	}
	// If an enrolment was completed meanwhile, it has installed another key with its certificate.
	if now, err := tls.LoadX509KeyPair(r.Files.Certificate, r.Files.Key); err != nil || !now.Leaf.Equal(own.Leaf) {
		return false, fmt.Errorf("the certificate was replaced meanwhile; nothing was stored: %w", cmp.Or(err, errOther))
	}
	// Store the CAs first: they verify both the old and the new certificate. After an interruption, the
	// next hourly request completes the rest.
	if response.CAPEM != nil {
		if err := durable.Replace(r.Files.CA, trusted); err != nil {
			return false, err
		}
		r.Log.Info("the trusted CAs have changed", "file", r.Files.CA)
	}
	if response.CertificatePEM != nil {
		if err := durable.Replace(r.Files.Certificate, certificate); err != nil {
			return false, err
		}
		r.Log.Info("the certificate is renewed", "serial", leaf.SerialNumber.Text(16), "ends", leaf.NotAfter.UTC())
	}
	return true, nil
}

func (r *Renewer) request(key crypto.PrivateKey, trusted []byte) (*request, error) {
	csr, err := identity.Request(r.Router, key)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(trusted)
	return &request{1, string(csr), hex.EncodeToString(digest[:])}, nil
}
