package ownership

import (
	"math"
	"testing"

	"longline.dev/agent/internal/intent"
)

const vll = "6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01"

func TestParseTagReadsTagsThatFitIntoVPP(t *testing.T) {
	want := Tag{intent.Key{VLL: vll, End: "z"}, math.MaxInt32}
	got, ok := ParseTag(want.String())
	if !ok || got != want {
		t.Errorf("got %+v, %v", got, ok)
	}
	if len(want.String()) > 63 {
		t.Errorf("%d bytes", len(want.String()))
	}
}

func TestParseTagRefusesTextThatTheAgentNeverWrites(t *testing.T) {
	for why, text := range map[string]string{
		"empty":                  "",
		"a description":          "customer 7, rack 3",
		"another program":        "vppcfg:6f0b2c52",
		"no revision":            "longline:" + vll + ":a",
		"revision 0":             "longline:" + vll + ":a:0",
		"revision with a zero":   "longline:" + vll + ":a:03",
		"a third end":            "longline:" + vll + ":b:3",
		"no UUID":                "longline:rhino:a:3",
		"a signed revision":      "longline:" + vll + ":a:+3",
		"a revision too large":   "longline:" + vll + ":a:2147483648",
		"upper case":             "longline:6F0B2C52-7c0e-4d3a-9a34-0b8f0f3c1a01:a:3",
		"a UUID without dashes":  "longline:6f0b2c527c0e4d3a9a340b8f0f3c1a01:a:3",
		"no more than the UUID":  "longline:" + vll,
		"text after it":          "longline:" + vll + ":a:3:",
		"a prefix of its own":    "xlongline:" + vll + ":a:3",
		"without its own prefix": vll + ":a:3",
	} {
		if tag, ok := ParseTag(text); ok {
			t.Errorf("%s: %q was read as %+v", why, text, tag)
		}
	}
}
