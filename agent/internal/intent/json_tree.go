package intent

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// maxDepth is the largest nesting depth of a document. A valid document needs a depth of 4.
const maxDepth = 32

// object is a parsed JSON object. A parsed value is an object, []any, string, json.Number, bool or nil. For a
// known entry of the document, the parsed value is an *entry.
type object struct {
	members []member
	text    []byte // as written in the document
}

type member struct {
	name  string
	value any
}

func (o object) get(name string) (any, bool) {
	return find(o.members, name)
}

func find(members []member, name string) (any, bool) {
	for _, m := range members {
		if m.name == name {
			return m.value, true
		}
	}
	return nil, false
}

// parse reads exactly one JSON object. It refuses a name that occurs twice in one object, because programs
// differ in which of the two values they use.
//
// The standard library checks the grammar. parse builds the tree itself. This takes a third of the time that
// the standard decoder takes to build maps. This matters because the portal sends the intent of the whole
// router for each change of one VLL.
func parse(d document) (object, error) {
	switch {
	case !utf8.Valid(d.text):
		return object{}, errors.New("the text is not UTF-8")
	case depth(d.text) > maxDepth:
		return object{}, fmt.Errorf("nested more than %d deep", maxDepth)
	case !json.Valid(d.text):
		var value any
		if err := json.Unmarshal(d.text, &value); err != nil {
			return object{}, err // names the offset
		}
		return object{}, errors.New("the text is not JSON")
	}
	r := &reader{data: d.text, cut: d.cut}
	value, err := r.value()
	if err != nil {
		return object{}, err
	}
	o, ok := value.(object)
	if !ok {
		return object{}, errors.New("the document is not an object")
	}
	return o, nil
}

// depth returns the deepest nesting in JSON text.
func depth(data []byte) (deepest int) {
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
		}
	}
	return deepest
}

// reader builds the tree of a text whose grammar has been checked.
type reader struct {
	data []byte
	cut  map[int]*entry
	at   int
}

// next skips white space and the commas and colons between values, and returns the first byte after them.
func (r *reader) next() byte {
	for {
		switch c := r.data[r.at]; c {
		case ' ', '\t', '\r', '\n', ',', ':':
			r.at++
		default:
			return c
		}
	}
}

func (r *reader) value() (any, error) {
	switch r.next() {
	case '{':
		return r.object()
	case '[':
		return r.array()
	case '"':
		return r.text()
	case 't':
		r.at += len("true")
		return true, nil
	case 'f':
		r.at += len("false")
		return false, nil
	case 'n':
		r.at += len("null")
		return nil, nil
	}
	return r.number()
}

func (r *reader) object() (any, error) {
	start := r.at
	if e, cut := r.cut[start]; cut {
		r.at += len(placeholder)
		return e, nil
	}
	members := make([]member, 0, 8)
	for r.at++; r.next() != '}'; {
		name, err := r.text()
		if err != nil {
			return nil, err
		}
		value, err := r.value()
		if err != nil {
			return nil, err
		}
		members = append(members, member{name, value})
	}
	r.at++
	return object{members, r.data[start:r.at]}, unique(members)
}

func (r *reader) array() (any, error) {
	array := []any{}
	for r.at++; r.next() != ']'; {
		value, err := r.value()
		if err != nil {
			return nil, err
		}
		array = append(array, value)
	}
	r.at++
	return array, nil
}

func (r *reader) text() (string, error) {
	start, escaped := r.at, false
	for r.at++; r.data[r.at] != '"'; r.at++ {
		if r.data[r.at] == '\\' {
			escaped = true
			r.at++
		}
	}
	r.at++
	if !escaped {
		return string(r.data[start+1 : r.at-1]), nil
	}
	var text string
	err := json.Unmarshal(r.data[start:r.at], &text)
	return text, err
}

// number reads a number. It refuses a number that no float64 can represent.
func (r *reader) number() (any, error) {
	start := r.at
	for r.at < len(r.data) {
		if c := r.data[r.at]; (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E' {
			break
		}
		r.at++
	}
	number := string(r.data[start:r.at])
	if _, err := strconv.ParseFloat(number, 64); err != nil {
		return nil, fmt.Errorf("number %.20s is out of range", number)
	}
	return json.Number(number), nil
}

func unique(members []member) error {
	const few = 16
	if len(members) <= few {
		for i, m := range members {
			if _, twice := find(members[:i], m.name); twice {
				return fmt.Errorf("the name %q occurs twice in one object", m.name)
			}
		}
		return nil
	}
	names := make(map[string]bool, len(members))
	for _, m := range members {
		if names[m.name] {
			return fmt.Errorf("the name %q occurs twice in one object", m.name)
		}
		names[m.name] = true
	}
	return nil
}
