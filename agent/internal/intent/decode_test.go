package intent

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

const fixtures = "../../../tests/contract/intents"

func documents(t testing.TB, folder string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(fixtures, folder, "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no documents in %s: %v", folder, err)
	}
	found := make(map[string][]byte)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found[filepath.Base(path)] = data
	}
	return found
}

func TestEveryValidDocumentOfTheContractIsAccepted(t *testing.T) {
	for name, data := range documents(t, "valid") {
		t.Run(name, func(t *testing.T) {
			if _, err := Decode(data, "rhino"); err != nil {
				t.Fatalf("%v %+v", err, err)
			}
		})
	}
}

func TestEveryInvalidDocumentOfTheContractIsRefusedWithExactlyItsErrors(t *testing.T) {
	type broken struct{ Pointer, Code string }
	for name, data := range documents(t, "invalid") {
		t.Run(name, func(t *testing.T) {
			var document struct {
				Errors []broken
				Intent json.RawMessage
			}
			if err := json.Unmarshal(data, &document); err != nil {
				t.Fatal(err)
			}
			_, err := Decode(document.Intent, "rhino")
			var invalid *InvalidError
			if !errors.As(err, &invalid) {
				t.Fatalf("got %v, want an InvalidError", err)
			}
			var got []broken
			for _, e := range invalid.Errors {
				got = append(got, broken{e.Pointer, e.Code})
				if e.Detail == "" {
					t.Errorf("%s has no detail", e.Pointer)
				}
			}
			if !slices.Equal(got, document.Errors) {
				t.Errorf("got %+v\nwant %+v", got, document.Errors)
			}
		})
	}
}

func TestABodyThatIsNotAJSONObjectIsMalformed(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(fixtures, "malformed.json"))
	if err != nil {
		t.Fatal(err)
	}
	var bodies map[string]string
	if err := json.Unmarshal(data, &bodies); err != nil {
		t.Fatal(err)
	}
	bodies["a name twice"] = `{"schema": 1, "schema": 1}`
	bodies["not UTF-8"] = "{\"router\": \"\xff\"}"
	bodies["ends early"] = `{"present": [`
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			_, err := Decode([]byte(body), "rhino")
			var malformed *MalformedError
			if !errors.As(err, &malformed) {
				t.Errorf("got %v, want a MalformedError", err)
			}
		})
	}
}

func TestNestingOf32IsAcceptedAndOf33IsRefused(t *testing.T) {
	nested := func(depth int) string {
		body := `{"extra":`
		for range depth - 1 {
			body += "["
		}
		for range depth - 1 {
			body += "]"
		}
		return body + "}"
	}
	var invalid *InvalidError
	if _, err := Decode([]byte(nested(32)), "rhino"); !errors.As(err, &invalid) {
		t.Errorf("32 deep: got %v, want an InvalidError", err)
	}
	var malformed *MalformedError
	if _, err := Decode([]byte(nested(33)), "rhino"); !errors.As(err, &malformed) {
		t.Errorf("33 deep: got %v, want a MalformedError", err)
	}
}

func FuzzDecodeReturnsAnIntentOrReasons(f *testing.F) {
	for _, folder := range []string{"valid", "invalid"} {
		paths, _ := filepath.Glob(filepath.Join(fixtures, folder, "*.json"))
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := Decode(data, "rhino")
		if (in == nil) == (err == nil) {
			t.Fatalf("intent %v with error %v", in, err)
		}
		var invalid *InvalidError
		if errors.As(err, &invalid) && len(invalid.Errors) == 0 {
			t.Fatal("refused without a reason")
		}
	})
}

func TestEscapesInStringsAreDecoded(t *testing.T) {
	o, err := parse([]byte(`{"a\u0062c": "\"\\\u00fc", "n": [1, -2.5e3, true, false, null, {}]}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if value, ok := o.members["abc"]; !ok || value != "\"\\ü" {
		t.Errorf("got %v in %v", value, o)
	}
}

func FuzzTheTreeEqualsThatOfTheStandardLibrary(f *testing.F) {
	for _, text := range []string{`{"a": [1, {"b": null}], "c": "\u0000", "d": {}}`, `{"a":1,"a":2}`, `{} {}`, `{"a":1e400}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := parse(data, nil)
		if err != nil {
			return
		}
		var want map[string]any
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber()
		if err := decoder.Decode(&want); err != nil {
			t.Fatalf("accepted what is refused with %v", err)
		}
		if !reflect.DeepEqual(plain(got), any(want)) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func plain(value any) any {
	switch value := value.(type) {
	case object:
		members := make(map[string]any)
		for name, member := range value.members {
			members[name] = plain(member)
		}
		return members
	case []any:
		array := []any{}
		for _, element := range value {
			array = append(array, plain(element))
		}
		return array
	}
	return value
}
