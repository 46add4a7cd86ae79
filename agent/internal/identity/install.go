package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"longline.dev/agent/internal/config"
	"longline.dev/agent/internal/durable"
)

// pending is where a file waits until all that belong together are written.
func pending(path string) string { return path + ".new" }

// PendingKey is where the private key of a certificate that is being asked for is kept.
func PendingKey(paths config.TLS) string { return pending(paths.Key) }

// Written are all files that an enrolment or a renewal writes.
func Written(paths config.TLS) []string {
	var files []string
	for _, path := range []string{paths.Key, paths.Certificate, paths.CA} {
		files = append(files, path, pending(path))
	}
	return files
}

// Install puts a certificate, its CA and the pending key in the place of what is there: all three or none,
// also over a crash. The pending certificate is written last and renamed last: while it is there, the
// others are complete, and Finish does the rest.
func Install(paths config.TLS, certificate, ca []byte) error {
	if err := durable.Replace(pending(paths.CA), ca); err != nil {
		return err
	}
	if err := durable.Replace(pending(paths.Certificate), certificate); err != nil {
		return err
	}
	return Finish(paths)
}

// Finish ends an Install that was cut off; without one it does nothing.
func Finish(paths config.TLS) error {
	if _, err := os.Stat(pending(paths.Certificate)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, path := range []string{paths.CA, paths.Key, paths.Certificate} {
		err := os.Rename(pending(path), path)
		if errors.Is(err, fs.ErrNotExist) && path != paths.Certificate {
			continue // renamed before the cut
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
