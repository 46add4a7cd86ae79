package server

import (
	"net/http"
	"regexp"
	"strings"
)

// maxRequestIDs limits the length of a log line. The portal sends no more.
const maxRequestIDs = 50

var requestIDForm = regexp.MustCompile(`^[A-Za-z0-9._-]{8,64}$`)

// requestIDs returns the IDs that the header X-Request-Id lists: those of the HTTP requests that caused the
// orders in the document. They are only logged. An ID of another form is therefore ignored and not refused.
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
