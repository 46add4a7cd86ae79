package intent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is the largest nesting depth of a document. A valid document needs a depth of 4.
const maxDepth = 32

// object is a JSON object. A value is an object, []any, string, json.Number, bool or nil.
type object struct {
	members map[string]any
	// text is the object as written in the document. Only objects of the array present have it.
	text string
	// known is the known entry with this text, or nil. An object with a known entry has no members.
	known *entry
}

// parse reads exactly one JSON object, in UTF-8. It refuses a name that occurs twice in one object, because
// programs differ in which of the two values they use. It does not parse objects of the array present whose
// text is known.
func parse(data []byte, known map[string]*entry) (object, error) {
	r := &reader{Decoder: jsontext.NewDecoder(bytes.NewBuffer(data)), known: known}
	value, err := r.value()
	if errors.Is(err, io.EOF) {
		return object{}, errors.New("the document is empty")
	}
	if err != nil {
		return object{}, err
	}
	if _, err := r.ReadToken(); !errors.Is(err, io.EOF) {
		return object{}, errors.New("other text follows the document")
	}
	o, ok := value.(object)
	if !ok {
		return object{}, errors.New("the document is not an object")
	}
	return o, nil
}

type reader struct {
	*jsontext.Decoder
	known     map[string]*entry
	above     int     // depth of the text that this reader reads within the document
	inPresent bool    // the values that are read belong to the array present
	inner     *reader // reads the entries that are not known
}

func (r *reader) value() (any, error) {
	switch r.PeekKind() {
	case '{':
		if r.inPresent && r.StackDepth() == 2 {
			return r.entry()
		}
		return r.object()
	case '[':
		return r.array()
	case '0':
		return r.number()
	}
	token, err := r.ReadToken()
	switch {
	case err != nil:
		return nil, err
	case token.Kind() == '"':
		return token.String(), nil
	case token.Kind() == 'n':
		return nil, nil
	}
	return token.Bool(), nil
}

// entry reads an object of the array present. It parses the object only if its text is not known.
func (r *reader) entry() (any, error) {
	text, err := r.ReadValue() // checks the grammar, the names and UTF-8
	if err != nil {
		return nil, err
	}
	if e := r.known[string(text)]; e != nil {
		return object{known: e}, nil
	}
	o := object{text: string(text)}
	if r.inner == nil {
		r.inner = &reader{Decoder: &jsontext.Decoder{}, above: r.StackDepth()}
	}
	r.inner.Reset(bytes.NewBufferString(o.text))
	o.members, err = r.inner.members()
	return o, err
}

func (r *reader) object() (any, error) {
	members, err := r.members()
	return object{members: members}, err
}

func (r *reader) begin() error {
	if r.above+r.StackDepth() >= maxDepth {
		return fmt.Errorf("nested more than %d deep", maxDepth)
	}
	_, err := r.ReadToken()
	return err
}

func (r *reader) members() (map[string]any, error) {
	if err := r.begin(); err != nil {
		return nil, err
	}
	members := make(map[string]any, 8)
	for r.PeekKind() != '}' {
		token, err := r.ReadToken()
		if err != nil {
			return nil, err
		}
		name := token.String()
		if r.above+r.StackDepth() == 1 {
			r.inPresent = name == "present"
		}
		if members[name], err = r.value(); err != nil {
			return nil, err
		}
	}
	_, err := r.ReadToken()
	return members, err
}

func (r *reader) array() (any, error) {
	if err := r.begin(); err != nil {
		return nil, err
	}
	array := []any{}
	for r.PeekKind() != ']' {
		value, err := r.value()
		if err != nil {
			return nil, err
		}
		array = append(array, value)
	}
	_, err := r.ReadToken()
	return array, err
}

// number reads a number. It refuses a number that no float64 can represent.
func (r *reader) number() (any, error) {
	number, err := r.ReadValue()
	if err != nil {
		return nil, err
	}
	if _, err := strconv.ParseFloat(string(number), 64); err != nil {
		return nil, fmt.Errorf("number %.20s is out of range", number)
	}
	return json.Number(number), nil
}

// Decoder decodes successive intents of one router. For each change of one VLL, the portal sends the intent
// of the whole router. An entry whose identical text was in the last document is not decoded again. Each
// document is still checked completely: its grammar, and every rule that compares entries.
type Decoder struct {
	router string

	mu    sync.Mutex
	known map[string]*entry // entries of the last valid document, by text; never changed after it is set
}

// entry is a valid object of the array present.
type entry struct {
	text string
	end  End
}

// NewDecoder returns a decoder for the named router without known entries.
func NewDecoder(router string) *Decoder { return &Decoder{router: router} }

// Decode does the same as the function Decode. It is safe for concurrent use.
func (d *Decoder) Decode(data []byte) (*Intent, error) {
	d.mu.Lock()
	last := d.known
	d.mu.Unlock()
	in, present, err := decode(data, d.router, last)
	if err != nil {
		return nil, err
	}
	known := make(map[string]*entry, len(present))
	for _, p := range present {
		e := p.known
		if e == nil {
			e = &entry{p.text, p.entry}
		}
		known[e.text] = e
	}
	d.mu.Lock()
	d.known = known
	d.mu.Unlock()
	return in, nil
}
