package intent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a document; a valid one needs 4.
const maxDepth = 32

// parse reads exactly one JSON object: map[string]any, []any, string, json.Number, bool or nil. A name
// that occurs twice in one object is refused, because two readers may disagree about which one counts.
func parse(data []byte) (map[string]any, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("the text is not UTF-8")
	}
	depth, members := scan(data)
	if depth > maxDepth {
		return nil, fmt.Errorf("nested more than %d deep", maxDepth)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("data after the end of the document")
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("the document is not an object")
	}
	kept, err := count(object)
	if err != nil {
		return nil, err
	}
	if kept != members {
		return nil, errors.New("a name occurs twice in one object")
	}
	return object, nil
}

// scan finds, in JSON text, the deepest nesting and the number of members of all objects.
func scan(data []byte) (deepest, members int) {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		case c == ':':
			members++
		}
	}
	return deepest, members
}

// count counts the members of all objects, and refuses numbers that no float64 holds.
func count(value any) (members int, err error) {
	switch value := value.(type) {
	case json.Number:
		if _, err := strconv.ParseFloat(value.String(), 64); err != nil {
			return 0, fmt.Errorf("number %.20s is out of range", value)
		}
	case map[string]any:
		members = len(value)
		for _, child := range value {
			n, err := count(child)
			if err != nil {
				return 0, err
			}
			members += n
		}
	case []any:
		for _, child := range value {
			n, err := count(child)
			if err != nil {
				return 0, err
			}
			members += n
		}
	}
	return members, nil
}
