package report

import (
	"testing"

	"longline.dev/agent/internal/observe"
)

func TestWhatOthersWroteIsReportedInPrintableCharacters(t *testing.T) {
	for text, want := range map[string]string{
		"Zürich, 10 Gbit/s": "Zürich, 10 Gbit/s",
		"a\x07b\x1b[31m\n":  "a\uFFFDb\uFFFD[31m\uFFFD",
		"\xff\xfe":          "\uFFFD\uFFFD",
		"\u202egnp.exe":     "\uFFFDgnp.exe", // turns the text around
		"\u2028":            "\uFFFD",
		"":                  "",
	} {
		if got := printable(text); got != want {
			t.Errorf("%q became %q, not %q", text, got, want)
		}
	}
}

func TestATagWithAControlCharacterDoesNotGetIntoTheReport(t *testing.T) {
	body := interfaceOf(&observe.Interface{Name: "eth0", Tag: "bell\x07"}, nil)
	if *body.Tag != "bell\uFFFD" {
		t.Errorf("got %q", *body.Tag)
	}
}

func TestAnInterfaceThatNobodyCanNameIsLeftOut(t *testing.T) {
	for name, want := range map[string]bool{
		"TenGigabitEthernet3/0/0.100": true, "host-x": true, "": false, "eth 0": false, "eth\x07": false, "ethé": false, "\xff": false,
	} {
		if nameable(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
