package server

import (
	"net/http"
	"regexp"
	"strings"
)

// maxRequestIDs is the largest number of request IDs that are logged, which limits the length of a log line.
// The portal does not send more IDs.
const maxRequestIDs = 50

var requestIDForm = regexp.MustCompile(`^[A-Za-z0-9._-]{8,64}$`)

// requestIDs returns the IDs in the header X-Request-Id. They identify the HTTP requests to the portal that
// caused the orders in the document. The agent only logs them. An ID of another form is therefore ignored and
// not refused.
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
