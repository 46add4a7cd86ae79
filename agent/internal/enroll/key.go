package enroll

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"longline.dev/agent/internal/config"
	"longline.dev/agent/internal/durable"
	"longline.dev/agent/internal/identity"
)

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
