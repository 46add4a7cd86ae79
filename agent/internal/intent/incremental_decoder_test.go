package intent

import (
	"bytes"
	"reflect"
	"slices"
	"testing"
)

// agree decodes both documents with one decoder: the second result has to be that of a new decoder.
func agree(t *testing.T, first, second []byte) {
	t.Helper()
	d := NewDecoder("rhino")
	_, _ = d.Decode(first)
	for range 2 { // the second time with the entries of the document itself known
		got, gotErr := d.Decode(second)
		want, wantErr := Decode(second, "rhino")
		if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(gotErr, wantErr) {
			t.Fatalf("got %+v, %v\nwant %+v, %v\nafter %s\nof %s", got, gotErr, want, wantErr, first, second)
		}
	}
}

func TestKnownEntriesAreDecodedLikeNewOnes(t *testing.T) {
	valid := documents(t, "valid")
	for _, first := range valid {
		for _, second := range valid {
			agree(t, first, second)
		}
	}
	first := valid["vxlan4-dot1q.json"]
	for at := range first { // truncated, and with another character at each offset
		agree(t, first, first[:at])
		for _, other := range []byte("{}\"\\") {
			agree(t, first, slices.Concat(first[:at], []byte{other}, first[at+1:]))
		}
	}
}

func TestKnownEntriesAreNotDecodedAgain(t *testing.T) {
	data := documents(t, "valid")["vxlan4-dot1q.json"]
	d := NewDecoder("rhino")
	if _, err := d.Decode(data); err != nil {
		t.Fatal(err)
	}
	o, err := parse(data, d.known)
	if err != nil {
		t.Fatal(err)
	}
	present := o.members["present"].([]any)
	for _, element := range present {
		if element.(object).known == nil {
			t.Errorf("%v was not known", element)
		}
	}
	if len(present) == 0 {
		t.Error("the document has no entries")
	}
}

func TestAKnownEntryCountsOnlyAsAnElementOfPresent(t *testing.T) {
	data := documents(t, "valid")["vxlan4-dot1q.json"]
	d := NewDecoder("rhino")
	in, err := d.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	var entry []byte
	for text := range d.known {
		entry = []byte(text)
	}
	twice := slices.Concat(entry, []byte(","), entry)
	for why, second := range map[string][]byte{
		"among the tombstones":    bytes.Replace(data, []byte(`"removed": [`), slices.Concat([]byte(`"removed": [`), entry), 1),
		"twice":                   bytes.Replace(data, entry, twice, 1),
		"behind another value":    bytes.Replace(data, entry, slices.Concat([]byte("1"), entry), 1),
		"within a string":         bytes.Replace(data, []byte(`"rhino"`), slices.Concat([]byte(`"`), entry, []byte(`"`)), 1),
		"an empty one next to it": bytes.Replace(data, entry, slices.Concat([]byte("{},"), entry), 1),
		"as the document":         entry,
	} {
		if bytes.Equal(second, data) {
			t.Fatalf("%s: the document did not change", why)
		}
		agree(t, data, second)
		if _, err := d.Decode(second); err == nil {
			t.Errorf("%s: accepted", why)
		}
	}
	if again, err := d.Decode(data); err != nil || !reflect.DeepEqual(again, in) {
		t.Errorf("got %+v, %v", again, err)
	}
}

func FuzzAnIncrementalDecoderAgreesWithANewOne(f *testing.F) {
	all := documents(f, "valid")
	for _, first := range all {
		for _, second := range all {
			f.Add(first, second)
		}
	}
	f.Fuzz(agree)
}
