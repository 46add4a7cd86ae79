package report

import (
	"strings"
	"unicode"
)

// printable is a text that others wrote, with U+FFFD for what cannot be shown: the portal stores no control
// characters. Its length in characters stays.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// printableOr is printable for what may be null.
func printableOr(text *string) *string {
	if text == nil {
		return nil
	}
	clean := printable(*text)
	return &clean
}

// nameable is whether the portal can mean this interface: no port or link has a name of other characters than
// visible ASCII.
func nameable(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' })
}
