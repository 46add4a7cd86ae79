package report

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"longline.dev/agent/internal/spool"
)

// While the portal does not accept reports, the agent pauses between two attempts. The pause doubles after
// each attempt. The agent shortens each pause at random by up to half, so that a thousand agents do not retry
// simultaneously.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// Poster sends one report and decodes the response. It returns *RefusedError or another error. After another
// error, the report may be sent again.
type Poster interface {
	Post(ctx context.Context, kind string, report, answer any) error
}

// deliverer sends the records of a spool to the portal, in order. If the agent is killed before it has
// recorded a delivery on disk, it later sends the same records again. The portal detects duplicates by boot
// ID and sequence number.
type deliverer struct {
	kind  string
	spool *spool.Spool
	to    Poster
	log   *slog.Logger
	now   func() time.Time
	// compose returns a report of the first records, and the number of records in it.
	compose func([]spool.Record) (report any, n int, err error)
	// most is the maximum number of records in the next report. It is less than batch if an earlier report
	// was too large or too slow. 0 means batch.
	most int
	// unnoted is true while the agent cannot record deliveries on disk.
	unnoted bool
	// taken is the time when the portal last accepted a report (ms since the Unix epoch), 0 for never.
	taken atomic.Int64
}

func (d *deliverer) run(ctx context.Context) {
	wait := firstPause
	for ctx.Err() == nil {
		sent, err := d.deliverOne(ctx)
		switch {
		case err != nil:
			d.log.Warn("report not taken; it is kept", "kind", d.kind, "waiting", d.spool.Waiting(), "retry_within", wait, "error", err)
			pause(ctx, wait/2+rand.N(wait/2))
			wait = min(2*wait, longestPause)
		case !sent:
			select {
			case <-ctx.Done():
			case <-d.spool.Added():
			}
		default:
			wait = firstPause
		}
	}
}

// deliverOne sends one report. It returns false if there is nothing to send. If the portal refuses a report
// of several records, or does not accept a report in time, the next report has half as many records.
// deliverOne drops a record only if the portal refuses a report of this record alone, or if the record cannot
// be decoded.
func (d *deliverer) deliverOne(ctx context.Context) (bool, error) {
	records, err := d.spool.Oldest(cmp.Or(d.most, batch))
	if err != nil || len(records) == 0 {
		return false, err
	}
	report, n, err := d.compose(records)
	if err != nil {
		d.log.Error("a stored report cannot be read and is dropped", "kind", d.kind, "error", err)
		d.take(records[:1], true)
		return true, nil
	}
	var answer struct{} // the agent does not use the response, which contains the number of new records
	err = d.to.Post(ctx, d.kind, report, &answer)
	_, refused := errors.AsType[*RefusedError](err)
	switch {
	case refused && n > 1:
		d.log.Warn("report refused; its halves are sent", "kind", d.kind, "records", n, "error", err)
		d.most = n / 2
		return true, nil
	case refused:
		d.log.Error("record refused permanently and dropped", "kind", d.kind, "error", err)
	case err != nil:
		if isTimeout(err) {
			d.most = max(1, n/2)
		}
		return false, err
	default:
		d.taken.Store(d.now().UnixMilli())
	}
	d.most = min(2*cmp.Or(d.most, batch), batch)
	d.take(records[:n], refused)
	return true, nil
}

// isTimeout reports whether a report failed because the portal, or a proxy in front of the portal, was too
// slow.
func isTimeout(err error) bool {
	var slow interface{ Timeout() bool }
	status, is := errors.AsType[*statusError](err)
	return errors.As(err, &slow) && slow.Timeout() ||
		is && slices.Contains([]int{http.StatusRequestTimeout, http.StatusGatewayTimeout}, status.Status)
}

// take removes delivered or refused records from the spool. If the removal cannot be recorded on disk, the
// agent sends some of these records again after a restart. If refused is true, the records count as dropped.
func (d *deliverer) take(records []spool.Record, refused bool) {
	err := d.spool.Take(records, refused)
	switch {
	case err != nil && !d.unnoted:
		d.log.Error("deliveries cannot be recorded on disk; a restart would send reports again", "kind", d.kind, "error", err)
	case err == nil && d.unnoted:
		d.log.Info("deliveries are recorded on disk again", "kind", d.kind)
	}
	d.unnoted = err != nil
}

// Dropped returns the numbers of samples and of events that the portal will never receive. It returns nil if
// there is no portal.
func (r *Reporter) Dropped() map[string]int64 {
	return r.ofEach(func(d *deliverer) int64 { return d.spool.Dropped() })
}

// Waiting returns the numbers of samples and of events that the portal has not accepted yet. It returns nil
// if there is no portal.
func (r *Reporter) Waiting() map[string]int64 {
	return r.ofEach(func(d *deliverer) int64 { return d.spool.Waiting() })
}

func (r *Reporter) ofEach(figure func(*deliverer) int64) map[string]int64 {
	if r.client == nil {
		return nil
	}
	return map[string]int64{r.counters.kind: figure(r.counters), r.events.kind: figure(r.events)}
}

// Taken returns the time when the portal last accepted a report of each kind. It has no entry for a kind of
// which the portal has not accepted any report. It returns nil if there is no portal.
func (r *Reporter) Taken() map[string]time.Time {
	if r.client == nil {
		return nil
	}
	ms := r.ofEach(func(d *deliverer) int64 { return d.taken.Load() })
	ms["observed"] = r.observedTaken.Load()
	maps.DeleteFunc(ms, func(_ string, at int64) bool { return at == 0 })
	taken := make(map[string]time.Time, len(ms))
	for kind, at := range ms {
		taken[kind] = time.UnixMilli(at)
	}
	return taken
}

const (
	// postTimeout is the time limit of a request with a small body. The limit grows by a second for every
	// slowestRate bytes of the body.
	postTimeout = 10 * time.Second
	slowestRate = 256 << 10
	maxAnswer   = 1 << 20 // largest response that is read (bytes)
)

// statusError is a response with a status after which the report may be sent again.
type statusError struct{ Status int }

func (e *statusError) Error() string { return fmt.Sprintf("report: status %d", e.Status) }

// RefusedError says that the portal permanently refuses this report (413, 422), with the portal's reason.
type RefusedError struct {
	Status int
	Detail string
}

func (e *RefusedError) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("refused with status %d: %s", e.Status, e.Detail), ": ")
}

// ErrNotStored reports status 412: the report contains only the name of a list, and the portal does not have
// this list or needs its content.
var ErrNotStored = errors.New("report: the portal needs the complete report")

// Client posts reports to the portal's API for agents.
type Client struct {
	url    string
	config *tls.Config
	http   atomic.Pointer[http.Client]
}

// NewClient returns a client that posts under the portal's base URL.
func NewClient(url string, config *tls.Config) *Client {
	c := &Client{url: strings.TrimSuffix(url, "/"), config: config}
	c.http.Store(c.connections())
	return c
}

func (c *Client) connections() *http.Client {
	transport := &http.Transport{TLSClientConfig: c.config, ForceAttemptHTTP2: true, MaxIdleConns: 2, IdleConnTimeout: time.Minute}
	return &http.Client{Transport: transport}
}

// After Reconnect, requests use new connections with the current certificate and CAs. The connection of a
// running request is closed after that request.
func (c *Client) Reconnect() { c.http.Swap(c.connections()).CloseIdleConnections() }

// Post sends a report and decodes the response into answer. It returns *RefusedError, ErrNotStored, or
// another error. After another error, the report may be sent again.
func (c *Client) Post(ctx context.Context, kind string, report, answer any) error {
	body, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, postTimeout+time.Duration(len(body)/slowestRate)*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/api/agent/v1/"+kind, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Load().Do(request)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
		if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(answer); err != nil {
			return fmt.Errorf("report: answer: %w", err)
		}
		return nil
	case http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		var why struct{ Detail string }
		_ = json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&why) // a refusal may have no body
		return &RefusedError{response.StatusCode, why.Detail}
	case http.StatusPreconditionFailed:
		return ErrNotStored
	}
	return &statusError{response.StatusCode}
}

// etags contains the names that the portal assigned to the lists of the last report. The portal stores these
// lists. If a list is unchanged, the next report contains only the list's name. watch is the name of the list
// of watched routes. The portal sends this list to the agent, and only if it has changed.
type etags struct {
	watch                  string
	routes, ends, circuits namedList
}

// namedList identifies a list that the portal has stored, by the SHA-256 of its content. The list's name is
// "" if the portal has assigned none.
type namedList struct {
	content [sha256.Size]byte
	etag    string
}

// observedWire is an "observed" report as it is sent: each long list is either complete or replaced by its
// name.
type observedWire struct {
	observedBody
	Routes   json.RawMessage `json:"routes"`
	Ends     json.RawMessage `json:"ends"`
	Circuits json.RawMessage `json:"circuits"`
	// WatchETag is the name of the list of watched routes that the agent has received. It is absent if the agent
	// has received none.
	WatchETag string `json:"watch_etag,omitempty"`
}

type observedAnswer struct {
	// WatchRoutes is null if the list is unchanged since WatchETag.
	WatchRoutes []string `json:"watch_routes"`
	// Maintenance is nil from portals that do not support calibration.
	Maintenance *bool `json:"maintenance"`
	// Freeze is nil if the portal does not support freezes. It is the JSON value null if the portal requests
	// no freeze.
	Freeze json.RawMessage `json:"freeze"`
	// UnderlayTable is 0 from portals that do not support underlay tables.
	UnderlayTable uint32 `json:"underlay_table"`
	ETags         struct {
		WatchRoutes string `json:"watch_routes"`
		Routes      string `json:"routes"`
		Ends        string `json:"ends"`
		Circuits    string `json:"circuits"` // "" from portals that do not support circuits
	} `json:"etags"`
}

// post sends a report. If the portal does not have a list that the report only names, or needs the list's
// content, post sends the complete report. It returns the errors of the Poster.
func (e *etags) post(ctx context.Context, to Poster, report observedBody) (*observedAnswer, error) {
	routes, routesErr := json.Marshal(report.Routes)
	ends, endsErr := json.Marshal(report.Ends)
	circuits, circuitsErr := json.Marshal(report.Circuits)
	if err := errors.Join(routesErr, endsErr, circuitsErr); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	post := func() (*observedAnswer, error) {
		wire := observedWire{
			observedBody: report, WatchETag: e.watch,
			Routes: e.routes.orWhole(routes), Ends: e.ends.orWhole(ends), Circuits: e.circuits.orWhole(circuits),
		}
		var answer observedAnswer
		if err := to.Post(ctx, "observed", wire, &answer); err != nil {
			return nil, err
		}
		given := answer.ETags
		*e = etags{given.WatchRoutes, namedAs(given.Routes, routes), namedAs(given.Ends, ends), namedAs(given.Circuits, circuits)}
		return &answer, nil
	}
	answer, err := post()
	if errors.Is(err, ErrNotStored) {
		*e = etags{}
		answer, err = post()
	}
	return answer, err
}

func namedAs(etag string, list []byte) namedList { return namedList{sha256.Sum256(list), etag} }

// orWhole returns the name of the stored list if list has the same content, otherwise list.
func (n namedList) orWhole(list []byte) json.RawMessage {
	if n.etag == "" || n.content != sha256.Sum256(list) {
		return list
	}
	name, _ := json.Marshal(map[string]string{"etag": n.etag}) // a string is always valid JSON
	return name
}
