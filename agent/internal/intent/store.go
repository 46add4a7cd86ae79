package intent

import (
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

// OpenStore reads what is held in the folder; none is no error, one that cannot be read is.
func OpenStore(folder, router string) (*Store, error) {
	s := &Store{path: filepath.Join(folder, "intent.json")}
	data, err := os.ReadFile(s.path)
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the held intent: %w", err)
	}
	held, err := Decode(data, router)
	if err != nil {
		return nil, fmt.Errorf("read the held intent %s: %w", s.path, err)
	}
	s.held, s.hash, s.size = held, held.SHA256(), len(data)
	return s, nil
}

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
	if before, itsHash := s.Held(); before != nil {
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
