package report

import (
	"testing"

	"longline.dev/agent/internal/observe"
)

func TestForeignTextsAreReportedInPrintableCharacters(t *testing.T) {
	for text, want := range map[string]string{
		"Zürich, 10 Gbit/s": "Zürich, 10 Gbit/s",
		"a\x07b\x1b[31m\n":  "a\uFFFDb\uFFFD[31m\uFFFD",
		"\xff\xfe":          "\uFFFD\uFFFD",
		"\u202egnp.exe":     "\uFFFDgnp.exe", // reverses the direction of the text
		"\u2028":            "\uFFFD",
		"":                  "",
	} {
		if got := printable(text); got != want {
			t.Errorf("%q became %q, not %q", text, got, want)
		}
	}
}

func TestAControlCharacterInATagIsReplacedInTheReport(t *testing.T) {
	body := interfaceOf(&observe.Interface{Name: "eth0", Tag: "bell\x07"}, nil)
	if *body.Tag != "bell\uFFFD" {
		t.Errorf("got %q", *body.Tag)
	}
}

func TestAnInterfaceWithAnInvalidNameIsOmitted(t *testing.T) {
	for name, want := range map[string]bool{
		"TenGigabitEthernet3/0/0.100": true, "host-x": true, "": false, "eth 0": false, "eth\x07": false, "ethé": false, "\xff": false,
	} {
		if nameable(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
