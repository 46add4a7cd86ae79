package intent

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"testing"
)

func decodedIn(t testing.TB, document string) *Intent {
	t.Helper()
	in, err := Decode(documents(t, "valid")[document], "rhino")
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func opened(t *testing.T, folder string) *Store {
	t.Helper()
	return OpenStore(folder, "rhino")
}

func TestTheCanonicalDocumentDecodesToItself(t *testing.T) {
	for name := range documents(t, "valid") {
		in := decodedIn(t, name)
		again, err := Decode(in.Document(), "rhino")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !bytes.Equal(in.Document(), again.Document()) {
			t.Errorf("%s changes: %s", name, again.Document())
		}
	}
}

func TestTheCanonicalDocumentEqualsThatOfTheStandardLibrary(t *testing.T) {
	for name := range documents(t, "valid") {
		in := decodedIn(t, name)
		for i := range in.Present {
			in.Present[i].Access.Interface = "<\"w\\\u00e4\u2028\x01&>" // every decoder refuses this name; it tests only the encoding
		}
		var tree any // the standard library sorts the names of maps
		decoder := json.NewDecoder(bytes.NewReader(in.Document()))
		decoder.UseNumber()
		if err := decoder.Decode(&tree); err != nil {
			t.Fatalf("%s: %v in %s", name, err, in.Document())
		}
		var want bytes.Buffer
		encoder := json.NewEncoder(&want)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(tree); err != nil {
			t.Fatal(err)
		}
		if got := in.Document(); !bytes.Equal(got, bytes.TrimSpace(want.Bytes())) {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, want.Bytes())
		}
	}
}

func TestTheHashDoesNotDependOnOrder(t *testing.T) {
	in := decodedIn(t, "l2xc-both-ends.json")
	hash := in.SHA256()
	swapped := `{"removed":[],"present":[` + string(bytes.Join([][]byte{
		documentOf(t, in, 1), documentOf(t, in, 0)}, []byte(","))) + `],"generation":42,"router":"rhino","schema":1}`
	again, err := Decode([]byte(swapped), "rhino")
	if err != nil {
		t.Fatal(err)
	}
	if again.SHA256() != hash {
		t.Error("the same entries in another order have another hash")
	}
}

func documentOf(t *testing.T, in *Intent, i int) []byte {
	t.Helper()
	one := (&Intent{Router: in.Router, Generation: 1, Present: in.Present[i : i+1]}).Document()
	_, rest, _ := bytes.Cut(one, []byte(`"present":[`))
	entry, _, _ := bytes.Cut(rest, []byte(`],"removed"`))
	return entry
}

func TestTheStoredIntentSurvivesARestart(t *testing.T) {
	folder := t.TempDir()
	in := decodedIn(t, "vxlan4-dot1q.json")
	if err := opened(t, folder).Accept(in); err != nil {
		t.Fatal(err)
	}
	stored, hash := opened(t, folder).Current()
	if stored == nil || stored.Generation != 42 || hash != in.SHA256() {
		t.Errorf("stored %+v with hash %s", stored, hash)
	}
}

func TestANewIntentNeedsAHigherGeneration(t *testing.T) {
	store := opened(t, t.TempDir())
	stored := decodedIn(t, "vxlan4-dot1q.json")
	if err := store.Accept(stored); err != nil {
		t.Fatal(err)
	}
	if err := store.Accept(decodedIn(t, "vxlan4-dot1q.json")); err != nil {
		t.Errorf("the same document again: %v", err)
	}
	older := decodedIn(t, "empty.json")
	older.Generation = 41
	var old *OldGenerationError
	if err := store.Accept(older); !errors.As(err, &old) || old.Stored != 42 || old.Generation != 41 {
		t.Errorf("an older one: %v", err)
	}
	var reused *GenerationReusedError
	if err := store.Accept(decodedIn(t, "empty.json")); !errors.As(err, &reused) {
		t.Errorf("other content: %v", err)
	}
	newer := decodedIn(t, "empty.json")
	newer.Generation = 43
	if err := store.Accept(newer); err != nil {
		t.Errorf("a newer one: %v", err)
	}
}

func TestAnIntentThatCannotBeWrittenIsNotStored(t *testing.T) {
	folder := t.TempDir()
	store := opened(t, folder)
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if err := store.Accept(decodedIn(t, "vxlan4-dot1q.json")); err == nil {
		t.Fatal("accepted without a disk")
	}
	if stored, _ := store.Current(); stored != nil {
		t.Error("stored without a disk")
	}
}
