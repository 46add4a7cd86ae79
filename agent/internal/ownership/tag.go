// Package ownership records which objects in VPP belong to the agent. Every interface that the agent creates
// has a tag. A journal of planned objects covers the time between the creation and the tagging of an object.
package ownership

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"longline.dev/agent/internal/durable"
	"longline.dev/agent/internal/intent"
)

const prefix = intent.OwnTagPrefix

// Tag is the agent's tag on an interface: longline:<uuid>:<a|z>:<revision>. It has at most 58 bytes, and VPP
// stores up to 63.
type Tag struct {
	intent.Key
	Revision int32
}

func (t Tag) String() string {
	return prefix + t.VLL + ":" + t.End + ":" + strconv.FormatInt(int64(t.Revision), 10)
}

// PolicerName returns the name of an end's policer. It has 47 bytes, and VPP stores up to 63. Policers have
// no tag, so only the name shows the owner.
func PolicerName(end intent.Key) string { return prefix + end.VLL + ":" + end.End }

// ParsePolicerName parses a policer's name. ok is true if the agent could have written the name.
func ParsePolicerName(name string) (end intent.Key, ok bool) {
	tag, ok := ParseTag(name + ":1")
	return tag.Key, ok
}

// TableMark returns the mark of an end's classify tables, which have neither tag nor name. The agent stores
// the mark in the table's field for the number of the node that gets frames without a matching session. VPP
// has no node with such a number. The mark has 30 bits of a hash of the policer's name, so two ends of a
// router may have the same mark.
func TableMark(end intent.Key) uint32 {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(PolicerName(end))) // a hash never returns an error
	return tableMarks | sum.Sum32()>>2
}

// IsTableMark reports whether the agent could have written the number.
func IsTableMark(number uint32) bool { return number&^(tableMarks-1) == tableMarks }

const tableMarks = 1 << 30

// ParseTag parses a tag. ok is true if the agent could have written the tag. It allocates no memory, because
// each observation calls it for every interface of the router.
func ParseTag(text string) (tag Tag, ok bool) {
	rest, marked := strings.CutPrefix(text, prefix)
	if !marked || len(rest) < uuidLength+len(":a:1") || !isUUID(rest[:uuidLength]) {
		return Tag{}, false
	}
	end, number := rest[uuidLength:uuidLength+3], rest[uuidLength+3:]
	if end != ":a:" && end != ":z:" || number[0] < '1' || number[0] > '9' {
		return Tag{}, false
	}
	revision, err := strconv.ParseInt(number, 10, 32)
	if err != nil {
		return Tag{}, false
	}
	return Tag{intent.Key{VLL: rest[:uuidLength], End: end[1:2]}, int32(revision)}, true
}

const uuidLength = 36

// isUUID reports whether the text is a UUID in the canonical form: lower case, with dashes.
func isUUID(text string) bool {
	dashes := 0
	for i := range uuidLength {
		if c := text[i]; c == '-' {
			dashes++
		} else if !isHex[c] {
			return false
		}
	}
	return dashes == 4 && text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-'
}

// isHex is true for the bytes that are digits of lower-case hexadecimal numbers.
var isHex = func() (is [256]bool) {
	for _, digit := range []byte("0123456789abcdef") {
		is[digit] = true
	}
	return is
}()

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
