package server

import (
	"net/http"
	"regexp"
	"strings"
)

// maxRequestIDs is the largest number of request IDs that the agent logs. It limits the length of a line in
// the log. The portal does not send more IDs.
const maxRequestIDs = 50

var requestIDForm = regexp.MustCompile(`^[A-Za-z0-9._-]{8,64}$`)

// requestIDs returns the IDs in the header X-Request-Id. They identify the HTTP requests to the portal that
// caused the orders in the document. The agent only logs them. So the agent ignores an ID of another form and
// does not refuse the request.
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
