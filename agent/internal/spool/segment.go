package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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
