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

// OldGenerationError says that a document is refused because it is older than the stored document.
type OldGenerationError struct{ Stored, Generation int64 }

func (e *OldGenerationError) Error() string {
	return fmt.Sprintf("intent: generation %d is older than the stored %d", e.Generation, e.Stored)
}

// GenerationReusedError says that a document is refused because it has the generation of the stored document
// but differs from it.
type GenerationReusedError struct{ Generation int64 }

func (e *GenerationReusedError) Error() string {
	return fmt.Sprintf("intent: generation %d is stored with other content", e.Generation)
}

// Store stores the last accepted intent, in memory and on disk.
type Store struct {
	path      string
	setAside  *durable.SetAsideFile
	least     int64      // highest generation of the intents that are set aside: while no intent is stored, no older one is accepted
	accepting sync.Mutex // locked while the disk is written

	mu     sync.Mutex
	stored *Intent
	hash   string
	size   int // size of the stored document (bytes)
}

// leastReserve is the disk space that is reserved even while no intent is stored (bytes).
const leastReserve = 64 << 10

// Reserve reserves disk space for three documents of the current size, in addition to leastReserve. The three
// are the next intent, the journal in use and the previous journal. Journals are shorter than documents.
// Components that store other data in the folder must call Reserve first. Reserve returns an error of the
// disk.
func (s *Store) Reserve() error {
	s.mu.Lock()
	size := s.size
	s.mu.Unlock()
	return durable.Reserve(filepath.Dir(s.path), leastReserve+3*int64(size))
}

// OpenStore reads the stored intent in the folder. If the intent cannot be read, it is set aside, and no
// intent is stored until the portal sends one. If the generation of the set-aside intent can be read, Accept
// still refuses older generations.
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
		s.setAside = new(durable.SetAside(s.path, firstError(err)))
	}
	s.least = generationSetAside(folder)
	return s
}

// firstError returns err with the details of the document's first error.
func firstError(err error) error {
	invalid, is := errors.AsType[*InvalidError](err)
	if !is || len(invalid.Errors) == 0 {
		return err
	}
	first := invalid.Errors[0]
	return fmt.Errorf("%w, the first at %s: %s (%s)", err, first.Pointer, first.Detail, first.Code)
}

// generationSetAside returns the highest generation of the intents that are set aside in the folder, or 0 if
// no generation can be read.
func generationSetAside(folder string) (highest int64) {
	for _, aside := range durable.AllSetAside(nil, folder) {
		var document struct{ Generation int64 }
		if data, err := os.ReadFile(aside.Path); err == nil && json.Unmarshal(data, &document) == nil {
			highest = max(highest, document.Generation)
		}
	}
	return highest
}

// SetAside returns the file that was set aside when the store was opened, or nil if there was none.
func (s *Store) SetAside() *durable.SetAsideFile { return s.setAside }

// Current returns the last accepted intent and its hash, or nil and "" if there is no accepted intent. The
// intent must not be changed.
func (s *Store) Current() (*Intent, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored, s.hash
}

// Accept stores an intent. Current returns the previous intent until the new intent is safely on disk. If the
// same document is stored already, Accept does nothing. Accept returns *OldGenerationError,
// *GenerationReusedError or an error of the disk. After an error, the stored intent is unchanged.
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
