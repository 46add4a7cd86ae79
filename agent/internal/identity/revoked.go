package identity

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
)

// ErrRevoked says that a certificate is in the list of revoked certificates.
var ErrRevoked = errors.New("identity: the certificate has been revoked")

// Valid returns an error for a certificate that tls.revoked lists. While the list cannot be read, Valid
// refuses every certificate, because the loss of the file must not make a stolen key valid again. Each call
// reads the list again.
func (f *Files) Valid(certificate *x509.Certificate) error {
	if f.paths.Revoked == "" {
		return nil
	}
	list, err := os.ReadFile(f.paths.Revoked)
	if err != nil {
		return fmt.Errorf("identity: the list of revoked certificates: %w", err)
	}
	fingerprints, err := parseFingerprints(list)
	if err != nil {
		return fmt.Errorf("identity: %s: %w", f.paths.Revoked, err)
	}
	if fingerprints[sha256.Sum256(certificate.Raw)] {
		return ErrRevoked
	}
	return nil
}

func parseFingerprints(list []byte) (map[[sha256.Size]byte]bool, error) {
	found := make(map[[sha256.Size]byte]bool)
	lines := bufio.NewScanner(bytes.NewReader(list))
	for number := 1; lines.Scan(); number++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		text = strings.ReplaceAll(strings.TrimSpace(text), ":", "")
		if text == "" {
			continue
		}
		fingerprint, err := hex.DecodeString(text)
		if err != nil || len(fingerprint) != sha256.Size {
			return nil, fmt.Errorf("line %d is not a SHA-256 fingerprint (64 hexadecimal digits, colons allowed)", number)
		}
		found[[sha256.Size]byte(fingerprint)] = true
	}
	return found, lines.Err()
}
