package intent

import (
	"bytes"
	"testing"
)

func TestAProbeSurvivesARoundTrip(t *testing.T) {
	in, err := Decode(documents(t, "valid")["probe.json"], "rhino")
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range in.Present {
		if !end.IsProbe() || !end.Testing {
			t.Errorf("got %+v", end)
		}
	}
	if !bytes.Contains(in.Document(), []byte(`{"access":null,"admin_up":true,`)) {
		t.Errorf("written as %s", in.Document())
	}
	again, err := Decode(in.Document(), "rhino")
	if err != nil || again.SHA256() != in.SHA256() {
		t.Errorf("read back from disk: %+v, %v", again, err)
	}
}

func TestALineWithAPortIsNotAProbe(t *testing.T) {
	for name, data := range documents(t, "valid") {
		in, err := Decode(data, "rhino")
		if err != nil {
			t.Fatal(err)
		}
		for _, end := range in.Present {
			if end.IsProbe() != (name == "probe.json") {
				t.Errorf("%s: %+v", name, end)
			}
		}
	}
}
