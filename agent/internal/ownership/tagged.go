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

// Mark is what the agent tagged: the tag that it wrote, and which interface that was. Identity is a number made of all
// that tells the interface from others of its index: its name, and what its creation fixed.
type Mark struct {
	Tag
	Identity uint64
}

// Tagged is what the agent made and tagged in one run of VPP, by interface index. Anybody can clear or replace a tag;
// this tells what it was.
type Tagged map[uint32]Mark

// taggedFile keeps Tagged on disk: a line for the run of VPP, then one for each change, so that a change of one line
// costs no more where there are thousands. Nobody waits for the disk: that survives the death of the agent, and what the
// machine takes with it concerns a VPP that is gone too.
type taggedFile struct {
	path   string
	boot   Boot
	tagged Tagged
	lines  int  // in the file
	whole  bool // the file says all that is known; else it is written anew
}

const (
	taggedHead = "longline-tagged 1"
	// spareLines is how many lines beyond twice the interfaces there may be before the file is written anew.
	spareLines = 1000
)

// openTagged reads the file in the folder; one that cannot be understood is an empty one. Of a last line that was cut off
// nothing is known, of those before it everything. Error: it cannot be read.
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

// read takes one line: "index tag identity", or "index -" for what is no more.
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

// note takes over what changed in this run of VPP: marks that are new or other, and indices that bear none any more.
// Whatever becomes of the file, this process knows it.
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
	f.whole = false // until it is known to be there
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
