// Package renewal keeps a router's certificate and its CAs up to date: the portal is asked every hour, over the connection that
// the certificate opens, and decides what is due. The key stays.
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
	// Every is how often the portal is asked, give or take a quarter: a thousand agents do not ask at once.
	Every = time.Hour
	// first is the pause before an agent that has just started asks.
	first = 5 * time.Second
	// soon is how long before its end a certificate that was not renewed is complained of.
	soon = 21 * 24 * time.Hour
)

// Portal is asked; after Reconnect over a new connection.
type Portal interface {
	report.Poster
	Reconnect()
}

var errOther = errors.New("it is another one")

// Renewer asks for a router.
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
	CertificatePEM *string `json:"certificate_pem"` // nil: what it has is good
	CAPEM          *string `json:"ca_pem"`          // nil likewise
}

// Run asks until ctx ends.
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

// complain is louder the sooner the certificate ends.
func (r *Renewer) complain(err error) {
	level, ends := slog.LevelWarn, ""
	if own, loadErr := tls.LoadX509KeyPair(r.Files.Certificate, r.Files.Key); loadErr == nil {
		ends = own.Leaf.NotAfter.UTC().Format(time.RFC3339)
		if own.Leaf.NotAfter.Sub(r.Now()) < soon {
			level = slog.LevelError
		}
	}
	r.Log.Log(context.Background(), level, "the certificate and the CAs are not known to be good; the portal is asked again in an hour", "ends", ends, "error", err)
}

// Once asks, and where something came, once more: so the portal sees at once that it is used.
func (r *Renewer) Once(ctx context.Context) error {
	for range 2 {
		r.Portal.Reconnect()
		if came, err := r.ask(ctx); err != nil || !came {
			return err
		}
	}
	return nil
}

// ask stores what comes. A key that waits for its certificate (identity.PendingKey) is left to the enrolment
// that made it. What a connection uses it reads anew for each handshake.
func (r *Renewer) ask(ctx context.Context) (came bool, err error) {
	own, err := tls.LoadX509KeyPair(r.Files.Certificate, r.Files.Key)
	if err != nil {
		return false, err
	}
	trusted, err := os.ReadFile(r.Files.CA)
	if err != nil {
		return false, err
	}
	asked, err := r.request(own.PrivateKey, trusted)
	if err != nil {
		return false, err
	}
	var told answer
	if err := r.Portal.Post(ctx, "certificate", asked, &told); err != nil {
		return false, err
	}
	if told.CertificatePEM == nil && told.CAPEM == nil {
		return false, nil
	}
	certificate, err := os.ReadFile(r.Files.Certificate)
	if err != nil {
		return false, err
	}
	if told.CertificatePEM != nil {
		certificate = []byte(*told.CertificatePEM)
	}
	if told.CAPEM != nil {
		trusted = []byte(*told.CAPEM)
	}
	leaf, err := identity.Usable(certificate, trusted, own.Leaf.PublicKey, r.Router, r.Now())
	if err != nil {
		return false, fmt.Errorf("the portal's answer is not usable, nothing was stored: %w", err)
	}
	// An enrolment that ended meanwhile has brought another key, and its certificate.
	if now, err := tls.LoadX509KeyPair(r.Files.Certificate, r.Files.Key); err != nil || !now.Leaf.Equal(own.Leaf) {
		return false, fmt.Errorf("the certificate was replaced meanwhile, nothing was stored: %w", cmp.Or(err, errOther))
	}
	// The CAs first: they are those of both certificates. Cut off in between, the rest is done in an hour.
	if told.CAPEM != nil {
		if err := durable.Replace(r.Files.CA, trusted); err != nil {
			return false, err
		}
		r.Log.Info("the CAs that are trusted are others", "file", r.Files.CA)
	}
	if told.CertificatePEM != nil {
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
