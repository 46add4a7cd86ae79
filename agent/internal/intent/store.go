package intent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"longline.dev/agent/internal/durable"
)

// OldGenerationError refuses a document that is older than the stored one.
type OldGenerationError struct{ Stored, Generation int64 }

func (e *OldGenerationError) Error() string {
	return fmt.Sprintf("intent: generation %d is older than the stored %d", e.Generation, e.Stored)
}

// GenerationReusedError refuses a document with the stored generation and other content.
type GenerationReusedError struct{ Generation int64 }

func (e *GenerationReusedError) Error() string {
	return fmt.Sprintf("intent: generation %d is stored with other content", e.Generation)
}

// Store stores the last accepted intent, in memory and on disk.
type Store struct {
	path      string
	setAside  *durable.SetAsideFile
	least     int64      // generation of the intents that are set aside: while none is stored, nothing older is accepted
	accepting sync.Mutex // locked while the disk is written

	mu     sync.Mutex
	stored *Intent
	hash   string
	size   int // of its document, bytes
}

// leastReserve is the space that is reserved while no intent is stored (bytes).
const leastReserve = 64 << 10

// Reserve reserves disk space for three documents of the current size: the next intent, and two journals,
// which are shorter: the one in use and the previous one. Components that store other data in the
// folder call Reserve first. Error: that of the disk.
func (s *Store) Reserve() error {
	s.mu.Lock()
	size := s.size
	s.mu.Unlock()
	return durable.Reserve(filepath.Dir(s.path), leastReserve+3*int64(size))
}

// OpenStore reads the stored intent in the folder. An intent that cannot be read is set aside. Then none is
// stored until the portal sends it again. If its generation can be read, it still counts.
func OpenStore(folder, router string) *Store {
	s := &Store{path: filepath.Join(folder, "intent.json")}
	data, err := os.ReadFile(s.path)
	if err == nil {
		var stored *Intent
		if stored, err = Decode(data, router); err == nil {
			s.stored, s.hash, s.size = stored, stored.SHA256(), len(data)
			return s
		}
	}
	if !errors.Is(err, os.ErrNotExist) {
		aside := durable.SetAside(s.path, firstError(err))
		s.setAside = &aside
	}
	s.least = generationSetAside(folder)
	return s
}

// firstError returns an error that names the first error of a document.
func firstError(err error) error {
	var invalid *InvalidError
	if !errors.As(err, &invalid) || len(invalid.Errors) == 0 {
		return err
	}
	first := invalid.Errors[0]
	return fmt.Errorf("%w, the first at %s: %s (%s)", err, first.Pointer, first.Detail, first.Code)
}

// generationSetAside returns the highest generation of the intents that are set aside in the folder, 0 if
// none can be read.
func generationSetAside(folder string) (highest int64) {
	for _, aside := range durable.AllSetAside(nil, folder) {
		var document struct{ Generation int64 }
		if data, err := os.ReadFile(aside.Path); err == nil && json.Unmarshal(data, &document) == nil {
			highest = max(highest, document.Generation)
		}
	}
	return highest
}

// SetAside returns the file that was set aside when the store was opened, nil for none.
func (s *Store) SetAside() *durable.SetAsideFile { return s.setAside }

// Current returns the last accepted intent and its hash, nil and "" if there is none. The intent must not be
// changed.
func (s *Store) Current() (*Intent, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored, s.hash
}

// Accept stores an intent. Current returns it as soon as it is safely on disk, and the previous one until
// then. The same document again changes nothing. Errors: *OldGenerationError, *GenerationReusedError, or
// that of the disk; then the stored intent stays.
func (s *Store) Accept(in *Intent) error {
	s.accepting.Lock()
	defer s.accepting.Unlock()
	document := in.Document()
	hash := hashOf(document)
	before, itsHash := s.Current()
	if before == nil && in.Generation < s.least {
		return &OldGenerationError{Stored: s.least, Generation: in.Generation}
	}
	if before != nil {
		switch {
		case in.Generation < before.Generation:
			return &OldGenerationError{Stored: before.Generation, Generation: in.Generation}
		case in.Generation == before.Generation && hash != itsHash:
			return &GenerationReusedError{Generation: in.Generation}
		case hash == itsHash:
			return nil
		}
	}
	if err := durable.Replace(s.path, document); err != nil {
		return err
	}
	s.mu.Lock()
	s.stored, s.hash, s.size = in, hash, len(document)
	s.mu.Unlock()
	_ = s.Reserve() // if this fails, the next caller of Reserve tries again
	return nil
}
