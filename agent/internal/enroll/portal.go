package enroll

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// timeout limits the whole exchange.
	timeout = 30 * time.Second
	// maxAnswer exceeds the size of two certificates by far (bytes).
	maxAnswer = 1 << 20
)

// answer is the portal's response to POST /api/v1/enroll (docs/openapi.yaml).
type answer struct {
	Router         string `json:"router"`
	CertificatePEM string `json:"certificate_pem"`
	CAPEM          string `json:"ca_pem"`
}

func post(ctx context.Context, o Options, request []byte) (*answer, error) {
	body, err := json.Marshal(map[string]string{"token": o.Token, "csr_pem": string(request), "router": o.Router})
	if err != nil {
		return nil, err
	}
	address := strings.TrimSuffix(o.Portal, "/") + "/api/v1/enroll"
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	post.Header.Set("Content-Type", "application/json")
	trust, err := o.Trust.config(post.URL.Hostname())
	if err != nil {
		return nil, err
	}
	client := &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: trust, DisableKeepAlives: true,
		},
		// The token is for the named portal only: do not follow redirects.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(post)
	if err != nil {
		return nil, o.Trust.explain(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusCreated {
		return nil, refusal(address, response.StatusCode, text)
	}
	a := new(answer)
	if err := json.Unmarshal(text, a); err != nil {
		return nil, fmt.Errorf("%s is not the portal: its response is not JSON", address)
	}
	return a, nil
}

// refusal returns a problem document (RFC 9457) as an error.
func refusal(address string, status int, text []byte) error {
	var problem struct {
		Type, Title, Detail string
		Errors              []struct{ Detail string }
	}
	if err := json.Unmarshal(text, &problem); err != nil || problem.Type == "" {
		return fmt.Errorf("%s answered with status %d: is this the portal's URL?", address, status)
	}
	why := problem.Detail
	for _, each := range problem.Errors {
		if each.Detail != "" && each.Detail != problem.Detail {
			why += " " + each.Detail
		}
	}
	return errors.New("the portal refused: " + why)
}
