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
	"time"
)

const (
	postTimeout = 10 * time.Second
	maxAnswer   = 1 << 20 // bytes
)

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
	url  string
	http *http.Client
}

// NewClient posts under the portal's base URL.
func NewClient(url string, config *tls.Config) *Client {
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, MaxIdleConns: 2, IdleConnTimeout: time.Minute}
	return &Client{url: strings.TrimSuffix(url, "/"), http: &http.Client{Transport: transport, Timeout: postTimeout}}
}

// CloseIdle has the next request make a new connection, with the certificate and the CAs of now.
func (c *Client) CloseIdle() { c.http.CloseIdleConnections() }

// Post sends a report and reads the answer into answer. Errors: *RefusedError, or anything after which the
// report may be sent again.
func (c *Client) Post(ctx context.Context, kind string, report, answer any) error {
	body, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/api/agent/v1/"+kind, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
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
	return fmt.Errorf("report: status %d", response.StatusCode)
}
