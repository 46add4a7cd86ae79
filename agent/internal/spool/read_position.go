package spool

import (
	"encoding/json"
	"errors"
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

// loadPosition reads the position on disk. It sets an unreadable file aside and starts with the oldest
// record.
func (s *Spool) loadPosition() (p positionFile) {
	path := filepath.Join(s.folder, positionName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return p
	}
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err == nil && (p.Offset < 0 || p.Dropped < 0) {
		err = errors.New("numbers below 0")
	}
	if err != nil {
		s.setAside = new(durable.SetAside(path, err))
		return positionFile{}
	}
	return p
}

// note writes the position and the number of dropped records to disk, if they have changed since the last
// write.
func (s *Spool) note() error {
	if s.noted || !s.opened { // a position that could not be read may still be right
		return nil
	}
	data, err := json.Marshal(positionFile{s.taken.segment, s.taken.offset, s.dropped.Load()})
	if err == nil {
		err = durable.Replace(filepath.Join(s.folder, positionName), data)
	}
	s.noted = err == nil
	return err
}
