// Package own says what belongs to the agent: the tag on every interface it makes, and the journal of
// what it was about to make, for the moment between creation and tag.
package own

import (
	"strconv"
	"strings"

	"github.com/google/uuid"

	"longline.dev/agent/internal/intent"
)

const prefix = "longline:"

// Tag is the mark on an interface: longline:<uuid>:<a|z>:<revision>, at most 58 of the 63 bytes that VPP
// keeps.
type Tag struct {
	intent.Key
	Revision int32
}

func (t Tag) String() string {
	return prefix + t.VLL + ":" + t.End + ":" + strconv.FormatInt(int64(t.Revision), 10)
}

// ParseTag reads a tag; ok is false for anything that the agent would not have written.
func ParseTag(text string) (tag Tag, ok bool) {
	rest, marked := strings.CutPrefix(text, prefix)
	if !marked {
		return Tag{}, false
	}
	parts := strings.Split(rest, ":")
	if len(parts) != 3 {
		return Tag{}, false
	}
	revision, err := strconv.ParseInt(parts[2], 10, 32)
	if err != nil || revision < 1 || parts[1] != "a" && parts[1] != "z" {
		return Tag{}, false
	}
	if _, err := uuid.Parse(parts[0]); err != nil {
		return Tag{}, false
	}
	tag = Tag{intent.Key{VLL: parts[0], End: parts[1]}, int32(revision)}
	return tag, tag.String() == text
}
