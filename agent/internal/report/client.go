package report

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// postTimeout is the time that a request has, and in addition a second for each slowestRate bytes of its body.
	postTimeout = 10 * time.Second
	slowestRate = 256 << 10
	maxAnswer   = 1 << 20 // bytes
)

// statusError is an answer after which the report may be sent again.
type statusError struct{ Status int }

func (e *statusError) Error() string { return fmt.Sprintf("report: status %d", e.Status) }

// RefusedError says that the portal will never take this report (413, 422), and why in its words.
type RefusedError struct {
	Status int
	Detail string
}

func (e *RefusedError) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("refused with status %d: %s", e.Status, e.Detail), ": ")
}

// ErrNotStored says that the report names what the portal has not stored, or has to look into (412).
var ErrNotStored = errors.New("report: the portal wants it whole")

// Client posts to the portal's door for agents.
type Client struct {
	url    string
	config *tls.Config
	http   atomic.Pointer[http.Client]
}

// NewClient posts under the portal's base URL.
func NewClient(url string, config *tls.Config) *Client {
	c := &Client{url: strings.TrimSuffix(url, "/"), config: config}
	c.http.Store(c.connections())
	return c
}

func (c *Client) connections() *http.Client {
	transport := &http.Transport{TLSClientConfig: c.config, ForceAttemptHTTP2: true, MaxIdleConns: 2, IdleConnTimeout: time.Minute}
	return &http.Client{Transport: transport}
}

// Reconnect has all requests from now on use new connections, with the certificate and the CAs of now. One that is
// under way ends on its own, which serves no other.
func (c *Client) Reconnect() { c.http.Swap(c.connections()).CloseIdleConnections() }

// Post sends a report and reads the answer into answer. Errors: *RefusedError, or anything after which the
// report may be sent again.
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
		_ = json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&why) // whoever refuses need not say why
		return &RefusedError{response.StatusCode, why.Detail}
	case http.StatusPreconditionFailed:
		return ErrNotStored
	}
	return &statusError{response.StatusCode}
}
