// Package config reads the agent's YAML file.
package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"sigs.k8s.io/yaml"
)

// Config is the whole file. Relative paths are relative to the file's folder.
type Config struct {
	Router   string `json:"router"`    // this router's name, as in its certificate
	Listen   string `json:"listen"`    // host:port of the HTTPS listener
	StateDir string `json:"state_dir"` // intent.json and journal.json
	TLS      TLS    `json:"tls"`
	VPP      VPP    `json:"vpp"`
	Report   Report `json:"report"`
}

// TLS names PEM files: the CA, and this router's certificate and key.
type TLS struct {
	CA          string `json:"ca"`
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
}

// VPP names VPP's sockets.
type VPP struct {
	APISocket   string `json:"api_socket"`
	StatsSocket string `json:"stats_socket"`
}

// Report says where reports go; with an empty URL none are sent.
type Report struct {
	URL      string   `json:"url"`
	Interval Duration `json:"interval"` // default 10s
}

// Duration is written like "10s".
type Duration time.Duration

// UnmarshalJSON reads Go's notation of durations.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf(`a duration is written like "10s": %w`, err)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	*d = Duration(parsed)
	return nil
}

const (
	defaultInterval = 10 * time.Second
	leastInterval   = time.Second
)

var routerName = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)

// Load reads the file. Unknown keys, missing ones and wrong values are errors; all of them are named.
func Load(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	c := &Config{}
	if err := yaml.UnmarshalStrict(data, c); err != nil {
		return nil, fmt.Errorf("config %s: %w", path, err)
	}
	if c.Report.Interval == 0 {
		c.Report.Interval = Duration(defaultInterval)
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("config %s: %w", path, err)
	}
	folder := filepath.Dir(path)
	for _, p := range c.paths() {
		if !filepath.IsAbs(*p) {
			*p = filepath.Join(folder, *p)
		}
	}
	return c, nil
}

func (c *Config) paths() map[string]*string {
	return map[string]*string{
		"state_dir": &c.StateDir, "tls.ca": &c.TLS.CA, "tls.certificate": &c.TLS.Certificate, "tls.key": &c.TLS.Key,
		"vpp.api_socket": &c.VPP.APISocket, "vpp.stats_socket": &c.VPP.StatsSocket,
	}
}

func (c *Config) check() error {
	var wrong []error
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if !routerName.MatchString(c.Router) {
		fail("router: %q does not match %s", c.Router, routerName)
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		fail("listen: %w", err)
	}
	for name, path := range c.paths() {
		if *path == "" {
			fail("%s is required", name)
		}
	}
	if c.Report.URL != "" {
		if u, err := url.Parse(c.Report.URL); err != nil || u.Scheme != "https" || u.Host == "" {
			fail("report.url: %q is not an https URL", c.Report.URL)
		}
	}
	if time.Duration(c.Report.Interval) < leastInterval {
		fail("report.interval: %s is less than %s", time.Duration(c.Report.Interval), leastInterval)
	}
	return errors.Join(wrong...)
}
