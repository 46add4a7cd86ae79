package intent

import (
	"bytes"
	"testing"
)

// testedIn decodes a document of the contract whose first end has this value of testing; "" for none.
func testedIn(t *testing.T, testing string) (*Intent, error) {
	t.Helper()
	data := documents(t, "valid")["vxlan4-dot1q.json"]
	if testing != "" {
		data = bytes.Replace(data, []byte(`"revision": 3,`), []byte(`"revision": 3, "testing": `+testing+`,`), 1)
	}
	return Decode(data, "rhino")
}

func TestAnEndWithoutTestingIsNotTested(t *testing.T) {
	absent, err := testedIn(t, "")
	if err != nil {
		t.Fatal(err)
	}
	off, err := testedIn(t, "false")
	if err != nil {
		t.Fatal(err)
	}
	on, err := testedIn(t, "true")
	if err != nil {
		t.Fatal(err)
	}
	if absent.Present[0].Testing || off.Present[0].Testing || !on.Present[0].Testing {
		t.Errorf("absent: %v, false: %v, true: %v", absent.Present[0].Testing, off.Present[0].Testing, on.Present[0].Testing)
	}
	if off.SHA256() != absent.SHA256() || bytes.Contains(off.Document(), []byte("testing")) {
		t.Errorf("an agent that does not know the member would be sent it: %s", off.Document())
	}
	if on.SHA256() == absent.SHA256() || !bytes.Contains(on.Document(), []byte(`"revision":3,"testing":true,"transport"`)) {
		t.Errorf("the test is not part of the document: %s", on.Document())
	}
	again, err := Decode(on.Document(), "rhino")
	if err != nil || !again.Present[0].Testing {
		t.Errorf("read back from disk: %v, %v", again, err)
	}
}

func TestANullForTestingIsRefused(t *testing.T) {
	if _, err := testedIn(t, "null"); err == nil {
		t.Error("accepted")
	}
}

func TestAKnownEndWhoseTestingChangedIsDecodedAgain(t *testing.T) {
	decoder := NewDecoder("rhino")
	data := documents(t, "valid")["vxlan4-dot1q.json"]
	for _, tested := range []bool{false, true, false} {
		text := data
		if tested {
			text = bytes.Replace(data, []byte(`"revision": 3,`), []byte(`"revision": 3, "testing": true,`), 1)
		}
		if in, err := decoder.Decode(text); err != nil || in.Present[0].Testing != tested {
			t.Fatalf("got %+v, %v", in, err)
		}
	}
}
