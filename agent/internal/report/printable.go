package report

import (
	"strings"
	"unicode"
)

// printable replaces unprintable characters in a text by U+FFFD, because the portal stores no control
// characters. The text may come from any client of VPP. The number of characters stays the same.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// printableOr does the same as printable for a text that may be nil.
func printableOr(text *string) *string {
	if text == nil {
		return nil
	}
	clean := printable(*text)
	return &clean
}

// nameable reports whether the portal can refer to an interface with this name. In the portal, names of ports
// and links consist of visible ASCII characters.
func nameable(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' })
}
