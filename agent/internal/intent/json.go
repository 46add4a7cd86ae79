package intent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
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
		members, err := r.members()
		return object{members: members}, err
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

// fields reads the members of one object and collects their errors. It records the names that were read, so
// that unknown members can be refused.
type fields struct {
	object  object
	pointer string
	read    []string
	errors  *[]Error
}

func (f *fields) fail(name, code, format string, args ...any) {
	*f.errors = append(*f.errors, Error{Pointer: f.at(name), Code: code, Detail: fmt.Sprintf(format, args...)})
}

// escaper turns a name into a reference token (RFC 6901).
var escaper = strings.NewReplacer("~", "~0", "/", "~1")

func (f *fields) at(name string) string { return f.pointer + "/" + escaper.Replace(name) }

// optional returns a member. It returns null as nil. If the member is absent, it returns false.
func (f *fields) optional(name string) (any, bool) {
	f.read = append(f.read, name)
	value, ok := f.object.members[name]
	return value, ok
}

// get returns a member like optional. If the member is absent, get also reports an error.
func (f *fields) get(name string) (any, bool) {
	value, ok := f.optional(name)
	if !ok {
		f.fail(name, "missing", "%s is required", name)
	}
	return value, ok
}

// refuseUnknown reports every member that was not read, sorted by name.
func (f *fields) refuseUnknown() {
	for _, name := range slices.Sorted(maps.Keys(f.object.members)) {
		if !slices.Contains(f.read, name) {
			f.fail(name, "unknown_field", "no field has this name")
		}
	}
}

func (f *fields) wrongType(name, want string) {
	f.fail(name, "type", "must be %s", want)
}

func (f *fields) integer(name string, low, high int64) (int64, bool) {
	value, ok := f.get(name)
	if !ok {
		return 0, false
	}
	return f.asInteger(name, value, low, high)
}

func (f *fields) asInteger(name string, value any, low, high int64) (int64, bool) {
	number, ok := value.(json.Number)
	if !ok || strings.ContainsAny(number.String(), ".eE") {
		f.wrongType(name, "an integer")
		return 0, false
	}
	n, err := strconv.ParseInt(number.String(), 10, 64)
	if err != nil || n < low || n > high {
		f.fail(name, "out_of_range", "%.20s is not in %d..%d", number, low, high)
		return 0, false
	}
	return n, true
}

// typed reads a member whose value has the type T. want describes this type.
func typed[T any](f *fields, name, want string) (value T, ok bool) {
	raw, found := f.get(name)
	if value, ok = raw.(T); found && !ok {
		f.wrongType(name, want)
	}
	return value, ok
}

func (f *fields) boolean(name string) (bool, bool) { return typed[bool](f, name, "true or false") }

// optionalBoolean reads a boolean member. If the member is absent, its value is false.
func (f *fields) optionalBoolean(name string) bool {
	if _, found := f.optional(name); !found {
		return false
	}
	b, _ := f.boolean(name)
	return b
}

func (f *fields) text(name string) (string, bool) { return typed[string](f, name, "a string") }

func (f *fields) asText(name string, value any) (string, bool) {
	s, ok := value.(string)
	if !ok {
		f.wrongType(name, "a string")
	}
	return s, ok
}

func (f *fields) oneOf(name string, values ...string) (string, bool) {
	s, ok := f.text(name)
	if !ok {
		return "", false
	}
	if !slices.Contains(values, s) {
		f.fail(name, "unknown_value", "%.40q is not one of %s", s, strings.Join(values, ", "))
		return "", false
	}
	return s, true
}

// id reads a UUID, lower case with dashes.
func (f *fields) id(name string) (string, bool) {
	s, ok := f.text(name)
	if !ok {
		return "", false
	}
	if id, err := uuid.Parse(s); err != nil || id.String() != s {
		f.wrongType(name, "a UUID in lower case with dashes")
		return "", false
	}
	return s, true
}

// needed reads a member that must be null or must not be null, depending on wanted. If wanted is true and the
// member is not null, needed returns its value and true. If wanted is false and the member is null, needed
// returns nil and false. In all other cases, it reports an error with the reason why, and returns false.
func (f *fields) needed(name string, wanted bool, why string) (value any, ok bool) {
	value, found := f.get(name)
	switch {
	case !found:
		return nil, false
	case wanted && value == nil:
		f.fail(name, "missing", "%s is required with %s", name, why)
		return nil, false
	case !wanted && value != nil:
		f.fail(name, "not_null", "%s must be null with %s", name, why)
		return nil, false
	}
	return value, wanted
}

func (f *fields) child(name string) (*fields, bool) {
	members, ok := typed[object](f, name, "an object")
	return &fields{object: members, pointer: f.at(name), errors: f.errors}, ok
}

// each reads an array of objects and calls read for each of them.
func (f *fields) each(name string, read func(element *fields)) {
	array, _ := typed[[]any](f, name, "an array")
	at := f.at(name)
	for i, value := range array {
		element := &fields{pointer: at + "/" + strconv.Itoa(i), errors: f.errors}
		var ok bool
		if element.object, ok = value.(object); !ok {
			*f.errors = append(*f.errors, Error{element.pointer, "type", "must be an object"})
			continue
		}
		read(element)
		element.refuseUnknown()
	}
}
