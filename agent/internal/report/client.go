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
