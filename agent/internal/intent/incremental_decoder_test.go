package intent

import (
	"bytes"
	"reflect"
	"slices"
	"testing"
)

// both documents through one decoder: the second answer has to be that of a decoder that knows nothing.
func agree(t *testing.T, first, second []byte) {
	t.Helper()
	d := NewDecoder("rhino")
	_, _ = d.Decode(first)
	for range 2 { // the second time by what was learnt from itself
		got, gotErr := d.Decode(second)
		want, wantErr := Decode(second, "rhino")
		if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(gotErr, wantErr) {
			t.Fatalf("got %+v, %v\nwant %+v, %v\nafter %s\nof %s", got, gotErr, want, wantErr, first, second)
		}
	}
}

func TestWhatIsKnownFromAnEarlierDocumentIsReadAsIfItWereNew(t *testing.T) {
	valid := documents(t, "valid")
	for _, first := range valid {
		for _, second := range valid {
			agree(t, first, second)
		}
	}
	first := valid["vxlan4-dot1q.json"]
	for at := range first { // cut off, and with something else at each place
		agree(t, first, first[:at])
		for _, other := range []byte("{}\"\\") {
			agree(t, first, slices.Concat(first[:at], []byte{other}, first[at+1:]))
		}
	}
}

func TestKnownEntriesAreNotReadAgain(t *testing.T) {
	data := documents(t, "valid")["vxlan4-dot1q.json"]
	d := NewDecoder("rhino")
	if _, err := d.Decode(data); err != nil {
		t.Fatal(err)
	}
	shorter := cutKnown(data, d.last())
	if len(shorter.cut) == 0 || len(shorter.text) >= len(data) {
		t.Errorf("%d entries were known in %s", len(shorter.cut), shorter.text)
	}
}

func TestAKnownEntryCountsWhereItStandsAlone(t *testing.T) {
	data := documents(t, "valid")["vxlan4-dot1q.json"]
	d := NewDecoder("rhino")
	in, err := d.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	var entry []byte
	for text := range d.last() {
		entry = []byte(text)
	}
	twice := slices.Concat(entry, []byte(","), entry)
	for why, second := range map[string][]byte{
		"among the tombstones":   bytes.Replace(data, []byte(`"removed": [`), slices.Concat([]byte(`"removed": [`), entry), 1),
		"twice":                  bytes.Replace(data, entry, twice, 1),
		"behind another value":   bytes.Replace(data, entry, slices.Concat([]byte("1"), entry), 1),
		"within a string":        bytes.Replace(data, []byte(`"rhino"`), slices.Concat([]byte(`"`), entry, []byte(`"`)), 1),
		"an empty one beside it": bytes.Replace(data, entry, slices.Concat([]byte("{},"), entry), 1),
		"as the document":        entry,
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

func FuzzADecoderThatKnowsAnEarlierDocumentAgreesWithOneThatDoesNot(f *testing.F) {
	all := documents(f, "valid")
	for _, first := range all {
		for _, second := range all {
			f.Add(first, second)
		}
	}
	f.Fuzz(agree)
}
