package report

import (
	"fmt"
	"net/netip"
	"slices"
)

// maxWatched bounds the routes that a portal may ask for: each costs a look-up in VPP at each report. A router
// with 10,000 VLLs has fewer far ends.
const maxWatched = 16 << 10

// parseWatchedRoutes reads the addresses of an answer, sorted, each once. What is no plain unicast address is left
// out and counted. Error: there are too many.
func parseWatchedRoutes(texts []string) (addresses []netip.Addr, strange int, err error) {
	if len(texts) > maxWatched {
		return nil, 0, fmt.Errorf("report: the portal asks for %d routes, at most %d are looked up", len(texts), maxWatched)
	}
	for _, text := range texts {
		address, err := netip.ParseAddr(text)
		if err != nil || address.Zone() != "" || address.Is4In6() || address.IsMulticast() || address.IsUnspecified() {
			strange++
			continue
		}
		addresses = append(addresses, address)
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	return slices.Compact(addresses), strange, nil
}

// setWatchedRoutes keeps the addresses to look up, nil for those of before, and the table in which: together, so that no report
// has the addresses of one answer in the table of another. What is new is reported on at once.
func (r *Reporter) setWatchedRoutes(table uint32, texts []string) {
	addresses, strange, err := parseWatchedRoutes(texts)
	if err != nil {
		r.log.Warn("the watched routes stay as they are", "error", err)
		texts = nil
	}
	if strange > 0 {
		r.log.Warn("the portal asks for routes to what is no unicast address", "ignored", strange)
	}
	r.mu.Lock()
	if texts == nil {
		addresses = r.watched
	}
	changed := table != r.underlayTable || !slices.Equal(addresses, r.watched)
	r.underlayTable, r.watched = table, addresses
	r.mu.Unlock()
	if changed {
		r.ReportNow()
	}
}
