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

// OldGenerationError refuses a document that is older than the one held.
type OldGenerationError struct{ Held, Generation int64 }

func (e *OldGenerationError) Error() string {
	return fmt.Sprintf("intent: generation %d is older than %d, which is held", e.Generation, e.Held)
}

// GenerationReusedError refuses a document with the held generation and other content.
type GenerationReusedError struct{ Generation int64 }

func (e *GenerationReusedError) Error() string {
	return fmt.Sprintf("intent: generation %d is held with other content", e.Generation)
}

// Store holds the last accepted intent, in memory and on disk.
type Store struct {
	path      string
	setAside  *durable.SetAsideFile
	least     int64      // of what is set aside: nothing older is accepted where nothing is held
	accepting sync.Mutex // held while the disk is written

	mu   sync.Mutex
	held *Intent
	hash string
	size int // of its document, bytes
}

// leastReserve is kept where no intent is held (bytes).
const leastReserve = 64 << 10

// Reserve keeps space on disk for three documents like the one held: the next one, and the journal of carrying one out,
// which is shorter, with the one before it. What else is kept in the folder has to ask for it first. Error: that of the disk.
func (s *Store) Reserve() error {
	s.mu.Lock()
	size := s.size
	s.mu.Unlock()
	return durable.Reserve(filepath.Dir(s.path), leastReserve+3*int64(size))
}

// OpenStore reads what is held in the folder. What cannot be read is set aside, and then nothing is held: what it said is
// not known, and the portal sends it again. A generation that can be read of it still counts.
func OpenStore(folder, router string) *Store {
	s := &Store{path: filepath.Join(folder, "intent.json")}
	data, err := os.ReadFile(s.path)
	if err == nil {
		var held *Intent
		if held, err = Decode(data, router); err == nil {
			s.held, s.hash, s.size = held, held.SHA256(), len(data)
			return s
		}
	}
	if !errors.Is(err, os.ErrNotExist) {
		aside := durable.SetAside(s.path, inWords(err))
		s.setAside = &aside
	}
	s.least = generationSetAside(folder)
	return s
}

// inWords names the first of a document's errors.
func inWords(err error) error {
	var invalid *InvalidError
	if !errors.As(err, &invalid) || len(invalid.Errors) == 0 {
		return err
	}
	first := invalid.Errors[0]
	return fmt.Errorf("%w, the first at %s: %s (%s)", err, first.Pointer, first.Detail, first.Code)
}

// generationSetAside is the highest generation of the intents that are set aside in the folder, 0 where none can be
// read.
func generationSetAside(folder string) (highest int64) {
	for _, aside := range durable.AllSetAside(nil, folder) {
		var document struct{ Generation int64 }
		if data, err := os.ReadFile(aside.Path); err == nil && json.Unmarshal(data, &document) == nil {
			highest = max(highest, document.Generation)
		}
	}
	return highest
}

// SetAside is what was set aside when the store was opened, nil for nothing.
func (s *Store) SetAside() *durable.SetAsideFile { return s.setAside }

// Held is the last accepted intent and its hash, nil and "" when there is none. It must not be changed.
func (s *Store) Held() (*Intent, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held, s.hash
}

// Accept makes in the held intent once it is safe on disk; until then Held is the one before. The same document again is no change. Errors:
// *OldGenerationError, *GenerationReusedError, or that of the disk; then the held intent stays.
func (s *Store) Accept(in *Intent) error {
	s.accepting.Lock()
	defer s.accepting.Unlock()
	document := in.Document()
	hash := hashOf(document)
	before, itsHash := s.Held()
	if before == nil && in.Generation < s.least {
		return &OldGenerationError{Held: s.least, Generation: in.Generation}
	}
	if before != nil {
		switch {
		case in.Generation < before.Generation:
			return &OldGenerationError{Held: before.Generation, Generation: in.Generation}
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
	s.held, s.hash, s.size = in, hash, len(document)
	s.mu.Unlock()
	_ = s.Reserve() // else whoever asks for it next
	return nil
}
