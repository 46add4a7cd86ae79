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

// loadPosition sets aside what cannot be read, and begins anew.
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
		aside := durable.SetAside(path, err)
		s.setAside = &aside
		return positionFile{}
	}
	return p
}

// note makes the disk know what is taken and dropped, if it does not yet.
func (s *Spool) note() error {
	if s.noted || !s.opened { // what is on disk may be right where it cannot be read
		return nil
	}
	data, err := json.Marshal(positionFile{s.taken.segment, s.taken.offset, s.dropped.Load()})
	if err == nil {
		err = durable.Replace(filepath.Join(s.folder, positionName), data)
	}
	s.noted = err == nil
	return err
}
