package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const complete = `
router: rhino
listen: 127.0.0.1:9443
state_dir: state
tls: {ca: ca.pem, certificate: /etc/longline/router.pem, key: router.key}
vpp: {api_socket: /run/vpp/api.sock, stats_socket: /run/vpp/stats.sock}
report: {url: https://portal:8443, interval: 3s}
`

func load(t *testing.T, text string) (*Config, string, error) {
	t.Helper()
	folder := t.TempDir()
	path := filepath.Join(folder, "agent.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path)
	return c, folder, err
}

func TestACompleteFileIsReadAndItsPathsAreRelativeToIt(t *testing.T) {
	c, folder, err := load(t, complete)
	if err != nil {
		t.Fatal(err)
	}
	if c.TLS.CA != filepath.Join(folder, "ca.pem") || c.StateDir != filepath.Join(folder, "state") {
		t.Errorf("relative paths became %s and %s", c.TLS.CA, c.StateDir)
	}
	if c.TLS.Certificate != "/etc/longline/router.pem" {
		t.Errorf("an absolute path became %s", c.TLS.Certificate)
	}
	if time.Duration(c.Report.Interval) != 3*time.Second {
		t.Errorf("interval is %v", c.Report.Interval)
	}
}

func TestWithoutReportsTheIntervalHasItsDefault(t *testing.T) {
	c, _, err := load(t, strings.Replace(complete, "report: {url: https://portal:8443, interval: 3s}", "", 1))
	if err != nil {
		t.Fatal(err)
	}
	if c.Report.URL != "" || time.Duration(c.Report.Interval) != 10*time.Second {
		t.Errorf("got %+v", c.Report)
	}
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"unknown key":        {"router: rhino", "router: rhino\nrooter: rhino", "rooter"},
		"router in capitals": {"router: rhino", "router: Rhino", "router"},
		"no port":            {"127.0.0.1:9443", "127.0.0.1", "listen"},
		"no state":           {"state_dir: state", "", "state_dir"},
		"no key":             {", key: router.key", "", "tls.key"},
		"no TLS to portal":   {"https://portal", "http://portal", "report.url"},
		"too often":          {"3s", "3ms", "report.interval"},
		"a bare number":      {"3s", "3", "duration"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := load(t, strings.Replace(complete, c.from, c.to, 1))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want it to name %s", err, c.want)
			}
		})
	}
}
