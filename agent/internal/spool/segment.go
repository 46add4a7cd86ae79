package spool

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"longline.dev/agent/internal/durable"
)

// Each record is preceded by its length and the CRC-32C of its data, 4 bytes each, little-endian.
const (
	frameHeader = 8
	maxRecord   = 64 << 20
)

const suffix = ".segment"

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	errDamaged = errors.New("a damaged record")
)

// segment describes one file with records.
type segment struct {
	id      uint64
	path    string
	size    int64 // bytes of complete records
	waiting int64 // number of records that have not been taken
}

func segmentPath(folder string, id uint64) string {
	return filepath.Join(folder, fmt.Sprintf("%016x%s", id, suffix))
}

// findSegments returns the folder's segments, oldest first.
func findSegments(folder string) ([]*segment, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var all []*segment
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), suffix)
		id, err := strconv.ParseUint(name, 16, 64)
		if ok && err == nil {
			all = append(all, &segment{id: id, path: filepath.Join(folder, entry.Name())})
		}
	}
	slices.SortFunc(all, func(a, b *segment) int { return strings.Compare(a.path, b.path) })
	return all, nil
}

// survey counts the complete records after the offset from. It reads only the lengths of records, because the
// segments may contain the records of a whole day when the agent starts.
func (g *segment) survey(from int64) error {
	file, err := os.Open(g.path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	g.size, g.waiting, err = walk(file, from, info.Size())
	return err
}

// walk follows the lengths of records in a range, and stops before a record that does not fit.
func walk(file io.ReaderAt, from, to int64) (end, n int64, err error) {
	var header [frameHeader]byte
	for end = from; end+frameHeader <= to; n++ {
		if _, err := file.ReadAt(header[:], end); err != nil {
			return end, n, err
		}
		length := int64(binary.LittleEndian.Uint32(header[:]))
		if length == 0 || length > maxRecord || end+frameHeader+length > to {
			break
		}
		end += frameHeader + length
	}
	return end, n, nil
}

// read returns up to n records. If a record is damaged, read returns the preceding records and errDamaged. It
// also returns errors of the file.
func (g *segment) read(from int64, n int) ([]Record, error) {
	if from >= g.size {
		return nil, nil
	}
	file, err := os.Open(g.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var records []Record
	for at := from; at < g.size && len(records) < n; {
		var header [frameHeader]byte
		if _, err := file.ReadAt(header[:], at); err != nil {
			return records, errDamaged
		}
		length := int64(binary.LittleEndian.Uint32(header[:]))
		if length == 0 || length > maxRecord || at+frameHeader+length > g.size {
			return records, errDamaged
		}
		data := make([]byte, length)
		if _, err := file.ReadAt(data, at+frameHeader); err != nil || crc32.Checksum(data, castagnoli) != binary.LittleEndian.Uint32(header[4:]) {
			return records, errDamaged
		}
		at += frameHeader + length
		records = append(records, Record{Data: data, End: Position{g.id, at}})
	}
	return records, nil
}

// write writes a record at that offset and waits for the disk.
func write(file *os.File, at int64, data []byte) error {
	frame := make([]byte, frameHeader, frameHeader+len(data))
	binary.LittleEndian.PutUint32(frame, uint32(len(data)))
	binary.LittleEndian.PutUint32(frame[4:], crc32.Checksum(data, castagnoli))
	if _, err := file.WriteAt(append(frame, data...), at); err != nil {
		return err
	}
	return file.Sync()
}

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
