package intent

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

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

func (f *fields) at(name string) string { return f.pointer + "/" + escape(name) }

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

// escape writes a name as an RFC 6901 reference token.
func escape(name string) string { return escaper.Replace(name) }

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

func (f *fields) boolean(name string) (bool, bool) {
	value, ok := f.get(name)
	if !ok {
		return false, false
	}
	b, ok := value.(bool)
	if !ok {
		f.wrongType(name, "true or false")
	}
	return b, ok
}

// optionalBoolean reads a boolean member. If the member is absent, its value is false.
func (f *fields) optionalBoolean(name string) bool {
	if _, found := f.optional(name); !found {
		return false
	}
	b, _ := f.boolean(name)
	return b
}

func (f *fields) text(name string) (string, bool) {
	value, ok := f.get(name)
	if !ok {
		return "", false
	}
	return f.asText(name, value)
}

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
	value, ok := f.get(name)
	if !ok {
		return nil, false
	}
	members, ok := value.(object)
	if !ok {
		f.wrongType(name, "an object")
		return nil, false
	}
	return &fields{object: members, pointer: f.at(name), errors: f.errors}, true
}

// each reads an array of objects and calls read for each of them.
func (f *fields) each(name string, read func(element *fields)) {
	value, ok := f.get(name)
	if !ok {
		return
	}
	array, ok := value.([]any)
	if !ok {
		f.wrongType(name, "an array")
		return
	}
	at := f.at(name)
	for i, value := range array {
		element := &fields{pointer: at + "/" + strconv.Itoa(i), errors: f.errors}
		if element.object, ok = value.(object); !ok {
			*f.errors = append(*f.errors, Error{element.pointer, "type", "must be an object"})
			continue
		}
		read(element)
		element.refuseUnknown()
	}
}
