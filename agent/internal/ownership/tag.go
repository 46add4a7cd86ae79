// Package ownership records which objects in VPP belong to the agent. Every interface that the agent creates
// has a tag. A journal of planned objects covers the time between the creation and the tagging of an object.
package ownership

import (
	"hash/fnv"
	"strconv"
	"strings"

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
