package spool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"longline.dev/agent/internal/durable"
)

const positionName = "position.json"

type positionFile struct {
	Segment uint64 `json:"segment"`
	Offset  int64  `json:"offset"`
	Dropped int64  `json:"dropped"`
}

func (s *Spool) loadPosition() error {
	data, err := os.ReadFile(filepath.Join(s.folder, positionName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var p positionFile
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil {
		return fmt.Errorf("spool: %s: %w", positionName, err)
	}
	s.taken = Position{p.Segment, p.Offset}
	s.dropped.Store(p.Dropped)
	return nil
}

// note makes the disk know what is taken and dropped, if it does not yet.
func (s *Spool) note() error {
	if s.noted {
		return nil
	}
	data, err := json.Marshal(positionFile{s.taken.segment, s.taken.offset, s.dropped.Load()})
	if err == nil {
		err = durable.Replace(filepath.Join(s.folder, positionName), data)
	}
	s.noted = err == nil
	return err
}
