package server

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestOnlyValidRequestIDsAreTakenFromTheHeader(t *testing.T) {
	many := make([]string, 2*maxRequestIDs)
	for i := range many {
		many[i] = "request-" + strconv.Itoa(i)
	}
	for name, c := range map[string]struct {
		header []string
		want   []string
	}{
		"none":                      {nil, []string{}},
		"one":                       {[]string{"4f0c2d1e9a"}, []string{"4f0c2d1e9a"}},
		"a list, and a second line": {[]string{"one-one-one,two-two-two", "three-three"}, []string{"one-one-one", "two-two-two", "three-three"}},
		"what is no id":             {[]string{`short, with space in it, "quoted1", ` + strings.Repeat("x", 65) + ", fine-one"}, []string{"fine-one"}},
		"too many":                  {[]string{strings.Join(many, ", ")}, many[:maxRequestIDs]},
	} {
		if got := requestIDs(http.Header{"X-Request-Id": c.header}); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
