// Package ownership says what belongs to the agent: the tag on every interface it makes, and the journal of
// what it was about to make, for the moment between creation and tag.
package ownership

import (
	"hash/fnv"
	"strconv"
	"strings"

	"longline.dev/agent/internal/intent"
)

const prefix = intent.OwnTagPrefix

// Tag is the mark on an interface: longline:<uuid>:<a|z>:<revision>, at most 58 of the 63 bytes that VPP
// keeps.
type Tag struct {
	intent.Key
	Revision int32
}

func (t Tag) String() string {
	return prefix + t.VLL + ":" + t.End + ":" + strconv.FormatInt(int64(t.Revision), 10)
}

// PolicerName is the name of an end's policer, 47 of the 63 bytes that VPP keeps. Policers have no tag; the
// name alone says whose they are.
func PolicerName(end intent.Key) string { return prefix + end.VLL + ":" + end.End }

// ParsePolicerName reads a name; ok is false for anything that the agent would not have written.
func ParsePolicerName(name string) (end intent.Key, ok bool) {
	tag, ok := ParseTag(name + ":1")
	return tag.Key, ok
}

// TableMark is the mark on an end's classify tables, which have neither tag nor name: VPP keeps it as the number of the node
// that gets the frames that hit no session of a table, and has no node of such a number. 30 bits of a hash of the policer's
// name, so two ends of a router may have the same.
func TableMark(end intent.Key) uint32 {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(PolicerName(end))) // a hash takes everything
	return tableMarks | sum.Sum32()>>2
}

// IsTableMark is false for what the agent would not have written.
func IsTableMark(number uint32) bool { return number&^(tableMarks-1) == tableMarks }

const tableMarks = 1 << 30

// ParseTag reads a tag; ok is false for anything that the agent would not have written. Every interface of
// a router is asked at each look, so this is done without intermediate text.
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

// isUUID accepts the canonical form alone: lower case, with dashes.
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

// isHex is true for the digits of lower-case hexadecimal numbers.
var isHex = func() (is [256]bool) {
	for _, digit := range []byte("0123456789abcdef") {
		is[digit] = true
	}
	return is
}()
