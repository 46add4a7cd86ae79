package report

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/freeze"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
)

// VPP stops its workers for some microseconds for each route lookup. The regular report after each report
// interval looks up all routes. Between two regular reports, the agent looks up all routes again only if
// something in VPP has changed, and only after a pause. The pause is lookupPause, or lookupPauseEach times
// the number of routes if this is longer.
const (
	lookupPause     = time.Second
	lookupPauseEach = time.Millisecond
)

// lookedUpRoutes has the results of the last route lookups. All lookups used the same connection to VPP.
type lookedUpRoutes struct {
	session   converge.Session
	at        time.Time // when all routes were last looked up together
	reachable map[observe.Destination]bool
}

// due returns the destinations that have to be looked up now. A destination without a result is always due.
func (l *lookedUpRoutes) due(all []observe.Destination, why occasion, now time.Time) []observe.Destination {
	pause := max(lookupPause, time.Duration(len(all))*lookupPauseEach)
	if why == onTick || why == onChange && now.Sub(l.at) >= pause {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(d observe.Destination) bool {
		_, known := l.reachable[d]
		return known
	})
}

// reachable reports, for each watched address and the far end of each tunnel, whether a route leads to it. It
// looks up only the routes that are due. For the other routes, it uses the last results. It returns
// converge.ErrNoVPP, another error of Engine.Session, or an error of the connection.
func (r *Reporter) reachable(
	ctx context.Context, stored *intent.Intent, watched []observe.Destination, why occasion,
) (map[observe.Destination]bool, error) {
	session, err := r.engine.Session()
	if err != nil {
		return nil, err
	}
	all := slices.Clone(watched)
	for _, e := range stored.Present {
		if e.Tunnel.Remote.IsValid() {
			all = append(all, observe.Destination{Table: e.Tunnel.Table, Address: e.Tunnel.Remote})
		}
	}
	slices.SortFunc(all, observe.Destination.Compare)
	all = slices.Compact(all)
	if r.routes.session != session {
		r.routes = lookedUpRoutes{session: session}
	}
	now := r.now()
	due := r.routes.due(all, why, now)
	found := make(map[observe.Destination]bool, len(all))
	if len(due) > 0 {
		if found, err = observe.Reachable(ctx, session, due, !r.ignoreDefaultRoutes); err != nil {
			return nil, err
		}
	}
	if len(due) == len(all) {
		r.routes.at = now
	}
	for _, d := range all {
		if _, now := found[d]; !now {
			found[d] = r.routes.reachable[d]
		}
	}
	r.routes.reachable = found
	return found, nil
}

// maxWatched is the largest number of routes that the portal may request, because each route costs a lookup
// in VPP for each regular report. A router with 10,000 VLLs has fewer far ends.
const maxWatched = 16 << 10

// parseWatchedRoutes parses the addresses of a response, sorted and without duplicates. It omits addresses
// that are not plain unicast addresses, and returns their number as strange. It returns an error if there are
// more than maxWatched addresses.
func parseWatchedRoutes(texts []string) (addresses []netip.Addr, strange int, err error) {
	if len(texts) > maxWatched {
		return nil, 0, fmt.Errorf("report: the portal requests %d routes, at most %d are looked up", len(texts), maxWatched)
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

// setWatchedRoutes stores the addresses to look up and their table. If texts is nil, the previous addresses
// stay. Addresses and table change together, so that no report uses the addresses of one response with the
// table of another response. A change is reported immediately.
func (r *Reporter) setWatchedRoutes(table uint32, texts []string) {
	addresses, strange, err := parseWatchedRoutes(texts)
	if err != nil {
		r.log.Warn("the watched routes stay as they are", "error", err)
		texts = nil
	}
	if strange > 0 {
		r.log.Warn("the portal requests routes to addresses that are not unicast", "ignored", strange)
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

// wantedFreeze is the freeze that the portal's response requests.
type wantedFreeze struct {
	ID      string `json:"id"`
	Reason  string `json:"reason"`
	UntilMS int64  `json:"until_ms"`
}

func freezeOf(status converge.Status, now time.Time) *freeze.Shown {
	shown := status.Freeze.Shown(now)
	if shown != nil {
		shown.Reason = printable(shown.Reason)
	}
	return shown
}

// applyFreeze passes the portal's requested freeze to the engine. If requested is nil, the portal does not
// support freezes, and applyFreeze does nothing.
func (r *Reporter) applyFreeze(requested json.RawMessage) {
	if requested == nil {
		return
	}
	var wanted *wantedFreeze
	if err := json.Unmarshal(requested, &wanted); err != nil {
		r.log.Warn("the freeze in the portal's response cannot be decoded", "error", err)
		return
	}
	if wanted == nil {
		wanted = &wantedFreeze{}
	}
	r.engine.PortalFreezes(wanted.ID, wanted.Reason, time.UnixMilli(wanted.UntilMS))
}
