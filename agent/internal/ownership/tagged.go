package ownership

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"longline.dev/agent/internal/durable"
)

// Mark records a tag that the agent wrote, and identifies the interface that received the tag. Identity is a
// hash of the interface's name and of the properties that VPP fixes at creation. It distinguishes the
// interface from other interfaces with the same index.
type Mark struct {
	Tag
	Identity uint64
}

// Tagged maps interface indices to the agent's marks in one run of VPP. Any client can clear or replace a tag
// in VPP, but this map keeps the agent's original tags.
type Tagged map[uint32]Mark

// taggedFile keeps Tagged on disk: one row for the run of VPP, then one row for each change. So recording a
// change takes the same time on a router with thousands of VLLs. Writes do not wait for the disk. The record
// survives a crash of the agent. A crash of the machine may lose the record, but VPP then loses its state
// too.
type taggedFile struct {
	path   string
	boot   Boot
	tagged Tagged
	lines  int  // number of rows in the file, without the first row
	whole  bool // the file is complete; otherwise the next write replaces it
}

const (
	taggedHead = "longline-tagged 1"
	// spareLines is the number of rows that the file may have in addition to twice the number of interfaces. A
	// longer file is rewritten.
	spareLines = 1000
)

// openTagged reads the file in the folder. A file with an unknown first row counts as empty. If the last row
// is incomplete, the rows before it are used. It returns an error if the file cannot be read.
func openTagged(folder string) (*taggedFile, error) {
	f := &taggedFile{path: filepath.Join(folder, "tagged.log"), tagged: make(Tagged)}
	data, err := os.ReadFile(f.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read what was tagged: %w", err)
	}
	head, rest, _ := bytes.Cut(data, []byte("\n"))
	if _, err := fmt.Sscanf(string(head), taggedHead+" %d %d", &f.boot.PID, &f.boot.MS); err != nil {
		return f, nil
	}
	f.whole = true
	for line := range bytes.Lines(rest) {
		if f.whole = f.whole && f.read(string(line)); !f.whole {
			break
		}
		f.lines++
	}
	return f, nil
}

// read parses one row: "index tag identity", or "index -" for a removed mark. It returns false if the row is
// invalid.
func (f *taggedFile) read(line string) bool {
	fields := strings.Fields(line)
	if !strings.HasSuffix(line, "\n") || len(fields) < 2 {
		return false
	}
	index, err := strconv.ParseUint(fields[0], 10, 32)
	if err != nil {
		return false
	}
	if len(fields) == 2 && fields[1] == "-" {
		delete(f.tagged, uint32(index))
		return true
	}
	tag, ours := ParseTag(fields[1])
	if !ours || len(fields) != 3 {
		return false
	}
	identity, err := strconv.ParseUint(fields[2], 16, 64)
	if err != nil {
		return false
	}
	f.tagged[uint32(index)] = Mark{tag, identity}
	return true
}

// note adds changes to the record of this run of VPP: new or changed marks, and indices that no longer have a
// mark. The agent uses the changes even if they cannot be written to the file.
func (f *taggedFile) note(boot Boot, marked Tagged, gone []uint32) error {
	if boot != f.boot {
		if !f.boot.mayBe(boot) {
			f.tagged = make(Tagged)
		}
		f.boot, f.whole = boot, false
	}
	var lines bytes.Buffer
	for index, mark := range marked {
		f.tagged[index] = mark
		writeMark(&lines, index, mark)
	}
	for _, index := range gone {
		delete(f.tagged, index)
		fmt.Fprintf(&lines, "%d -\n", index)
	}
	changes := len(marked) + len(gone)
	if !f.whole || f.lines+changes > 2*len(f.tagged)+spareLines {
		return f.rewrite()
	}
	if changes == 0 {
		return nil
	}
	f.whole = false // until the write has succeeded
	file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("note what is tagged: %w", err)
	}
	_, err = file.Write(lines.Bytes())
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("note what is tagged: %w", err)
	}
	f.whole, f.lines = true, f.lines+changes
	return nil
}

func (f *taggedFile) rewrite() error {
	var all bytes.Buffer
	fmt.Fprintf(&all, taggedHead+" %d %d\n", f.boot.PID, f.boot.MS)
	for index, mark := range f.tagged {
		writeMark(&all, index, mark)
	}
	if err := durable.ReplaceUnsynced(f.path, all.Bytes()); err != nil {
		return fmt.Errorf("note what is tagged: %w", err)
	}
	f.whole, f.lines = true, len(f.tagged)
	return nil
}

func writeMark(w *bytes.Buffer, index uint32, mark Mark) {
	fmt.Fprintf(w, "%d %s %x\n", index, mark.Tag, mark.Identity)
}
