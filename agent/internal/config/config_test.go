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

func TestPathsInTheFileAreRelativeToItsFolder(t *testing.T) {
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
	if c.Report.Interval != 3*time.Second {
		t.Errorf("interval is %v", c.Report.Interval)
	}
}

func TestWithoutReportsTheIntervalHasItsDefault(t *testing.T) {
	c, _, err := load(t, strings.Replace(complete, "report: {url: https://portal:8443, interval: 3s}", "", 1))
	if err != nil {
		t.Fatal(err)
	}
	if c.Report.URL != "" || c.Report.Interval != 10*time.Second {
		t.Errorf("got %+v", c.Report)
	}
}

func TestLeftOutKeysHaveTheirDefaults(t *testing.T) {
	c, folder, err := load(t, "router: rhino\nlisten: 127.0.0.1:9443\ntls: {ca: ca.pem, certificate: a.pem, key: a.key}\nvpp:\n")
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Router: "rhino", Listen: "127.0.0.1:9443", StateDir: "/var/lib/longline", ControlSocket: "/var/lib/longline/control.sock",
		TLS:   TLS{CA: filepath.Join(folder, "ca.pem"), Certificate: filepath.Join(folder, "a.pem"), Key: filepath.Join(folder, "a.key")},
		VPP:   VPP{"/run/vpp/api.sock", "/run/vpp/stats.sock", "/run/vpp/cli.sock", 10 * time.Minute, "auto", "absent", "count"},
		Drift: "auto", Adoption: "refused",
		Report: Report{Interval: 10 * time.Second, StoreLimit: 512 << 20},
	}
	if *c != want {
		t.Errorf("got %+v\nwant %+v", *c, want)
	}
}

func TestTheEarlierNameOfAVppcfgValueIsAccepted(t *testing.T) {
	for _, value := range []string{"present", "beside"} {
		c, _, err := load(t, strings.Replace(complete, "vpp: {", "vpp: {vppcfg: "+value+", ", 1))
		if err != nil || c.VPP.Vppcfg != "present" {
			t.Errorf("%s: got %+v, %v", value, c, err)
		}
	}
}

func TestErrorsNameThePathOfTheKey(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"unknown key":            {"router: rhino", "router: rhino\nrooter: rhino", "rooter: unknown key"},
		"unknown key, nested":    {"interval:", "intervall:", "report.intervall: unknown key"},
		"unknown section":        {"router: rhino", "router: rhino\nlogs: {level: high}", "logs.level: unknown key"},
		"key twice":              {"router: rhino", "router: rhino\nrouter: hippo", "router"},
		"text for a section":     {"vpp: {api_socket: /run/vpp/api.sock, stats_socket: /run/vpp/stats.sock}", "vpp: /run/vpp", "vpp: is a section"},
		"a section for text":     {"router: rhino", "router: {name: rhino}", "router.name: unknown key"},
		"a number for text":      {"router: rhino", "router: 7", "router: 7 is not text"},
		"router in capitals":     {"router: rhino", "router: Rhino", "router: "},
		"no port":                {"127.0.0.1:9443", "127.0.0.1", "listen: "},
		"port 0":                 {"127.0.0.1:9443", "127.0.0.1:0", "listen: port"},
		"no listener":            {"listen: 127.0.0.1:9443", "", "listen: is required"},
		"no key":                 {", key: router.key", "", "tls.key: is required"},
		"no TLS to portal":       {"https://portal", "http://portal", "report.url: "},
		"a user for a portal":    {"https://portal", "https://me@portal", "report.url: "},
		"one port for two":       {"router: rhino", "router: rhino\nmetrics: {listen: \"[::1]:9443\"}", "metrics.listen: [::1]:9443 has the port of listen"},
		"too often":              {"3s", "3ms", "report.interval: 3ms is not in"},
		"a bare number":          {"3s", "3", "report.interval: 3 is not a duration"},
		"no such policy":         {"router: rhino", "router: rhino\ndrift: maybe", `drift: "maybe" is not one of auto, hold`},
		"full reads too often":   {"/run/vpp/stats.sock}", "/run/vpp/stats.sock, full_look: 1s}", "vpp.full_look: 1s is not in"},
		"a size without a unit":  {"interval: 3s", "store_limit: 5000000", "report.store_limit: "},
		"a size that overflows":  {"interval: 3s", "store_limit: 999999999TiB", "report.store_limit: "},
		"no room for one sample": {"interval: 3s", "store_limit: 1KiB", "report.store_limit: "},
		"a long socket path":     {"state_dir: state", "state_dir: " + strings.Repeat("/long", 30), "control_socket: "},
		"not YAML":               {"router: rhino", "router: [", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(complete, c.from) {
				t.Fatalf("%q is not in the complete file", c.from)
			}
			_, _, err := load(t, strings.Replace(complete, c.from, c.to, 1))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestAllErrorsAreReportedTogether(t *testing.T) {
	_, _, err := load(t, "listen: nowhere\nreport: {interval: often, urll: x}\n")
	for _, path := range []string{"router: ", "listen: ", "tls.ca: ", "report.interval: ", "report.urll: "} {
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s is missing in %v", path, err)
		}
	}
}

func TestTheReferenceNamesEveryKey(t *testing.T) {
	var out strings.Builder
	Reference(&out)
	for _, k := range keys {
		if !strings.Contains(out.String(), "  "+k.path+" (") || k.meaning == "" {
			t.Errorf("%s is not explained", k.path)
		}
	}
}

func TestTheExampleOfTheDeploymentIsValid(t *testing.T) {
	if _, err := Load("../../../deploy/agent.yaml"); err != nil {
		t.Error(err)
	}
}
