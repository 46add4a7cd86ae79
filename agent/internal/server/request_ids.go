package server

import (
	"net/http"
	"regexp"
	"strings"
)

// maxRequestIDs bounds a line of the log; the portal names no more.
const maxRequestIDs = 50

var requestIDForm = regexp.MustCompile(`^[A-Za-z0-9._-]{8,64}$`)

// requestIDs are those that X-Request-Id lists: of the HTTP requests that the orders in the document came with. They are
// for the log alone, so what has not their form is left out and nothing is refused.
func requestIDs(header http.Header) []string {
	ids := []string{}
	for _, value := range header.Values("X-Request-Id") {
		for id := range strings.SplitSeq(value, ",") {
			if id = strings.TrimSpace(id); requestIDForm.MatchString(id) && len(ids) < maxRequestIDs {
				ids = append(ids, id)
			}
		}
	}
	return ids
}
