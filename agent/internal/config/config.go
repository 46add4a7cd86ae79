// Package config reads the agent's YAML file. One table of keys checks the file and generates the
// reference.
package config

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// Config is the whole file. Relative paths are relative to the file's folder.
type Config struct {
	Router        string // this router's name, as in its certificate
	Listen        string // host:port of the HTTPS listener
	StateDir      string // folder of data that has to survive a restart
	ControlSocket string // Unix socket for the agent's own commands
	Drift         string // "auto" or "hold": repair changes by other users automatically, or wait for approval
	Adoption      string // "allowed" or "refused": whether the agent may take over lines that other users created
	TLS           TLS
	VPP           VPP
	Report        Report
	Metrics       Metrics
	SNMP          SNMP
}

// TLS names PEM files: the CA, and this router's certificate and key. Revoked names a file with a
// list of fingerprints; "" means no list.
type TLS struct{ CA, Certificate, Key, Revoked string }

// VPP contains the names of VPP's sockets, the interval of full observations while nothing changes,
// and other settings about VPP.
type VPP struct {
	APISocket, StatsSocket, CLISocket string
	FullObservation                   time.Duration
	PathWatch                         string // "auto" or "off"
	Vppcfg                            string // whether vppcfg configures this VPP too
	DefaultRoutes                     string // "count" or "ignored": whether a default route leads to other routers
}

// Report is the destination of reports. If the URL is empty, the agent sends no reports.
type Report struct {
	URL        string
	Interval   time.Duration
	StoreLimit int64 // bytes of counter samples kept on disk while the portal is unreachable
}

// Metrics is the optional listener for Prometheus. If Listen is empty, there is no listener.
type Metrics struct{ Listen string }

// SNMP is the socket on which snmpd accepts subagents. If AgentX is empty, the agent does not
// register.
type SNMP struct{ AgentX string }

// maxSocketPath is the capacity of sockaddr_un without the terminating NUL (bytes).
const maxSocketPath = 107

// Load reads the file. Unknown keys, missing keys and invalid values are errors that begin with the path of
// the key. Load reports all of them.
func Load(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	c, err := parse(data, filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("config %s: %w", path, err)
	}
	return c, nil
}

func parse(data []byte, folder string) (*Config, error) {
	tree := make(map[string]any)
	if err := yaml.UnmarshalStrict(data, &tree); err != nil { // strict: refuses a key that occurs twice
		return nil, err
	}
	given := make(map[string]any)
	wrong := flatten("", tree, given)
	c := &Config{}
	for _, k := range keys {
		value, found := given[k.path]
		delete(given, k.path)
		switch {
		case found:
		case k.standard != "":
			value = k.standard
		case k.required:
			wrong = append(wrong, fmt.Errorf("%s: is required (%s)", k.path, k.meaning))
			continue
		default:
			continue
		}
		if err := k.set(c, value, folder); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", k.path, err))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(given)) {
		wrong = append(wrong, fmt.Errorf("%s: unknown key", path))
	}
	if c.ControlSocket == "" {
		c.ControlSocket = filepath.Join(c.StateDir, "control.sock")
	}
	for _, socket := range []struct{ key, path string }{{"control_socket", c.ControlSocket}, {"snmp.agentx", c.SNMP.AgentX}} {
		if len(socket.path) > maxSocketPath {
			wrong = append(wrong, fmt.Errorf("%s: %s has more than %d bytes (unix(7))", socket.key, socket.path, maxSocketPath))
		}
	}
	if c.Listen != "" && port(c.Listen) == port(c.Metrics.Listen) {
		wrong = append(wrong, fmt.Errorf("metrics.listen: %s has the port of listen, which speaks TLS", c.Metrics.Listen))
	}
	return c, errors.Join(wrong...)
}

func port(address string) string {
	_, port, _ := net.SplitHostPort(address) // was checked with its key
	return port
}

// flatten turns nested sections into dotted paths. The table of keys defines the sections. A
// section in this table must also be a section in the file.
func flatten(prefix string, tree map[string]any, into map[string]any) (wrong []error) {
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		path := prefix + name
		section, nested := tree[name].(map[string]any)
		switch {
		case nested:
			wrong = append(wrong, flatten(path+".", section, into)...)
		case tree[name] == nil && isSection(path):
		case isSection(path):
			wrong = append(wrong, fmt.Errorf("%s: is a section that contains keys", path))
		default:
			into[path] = tree[name]
		}
	}
	return wrong
}

// key is one key of the file, with its meaning and the function that stores its value in the
// configuration.
type key struct {
	path     string
	meaning  string
	standard string // the value if the key is absent
	required bool
	set      func(c *Config, value any, folder string) error
}

// keys is the schema, in the order of the reference. If a key uses the value of another key as its
// default, it comes after that key.
var keys = []key{
	{path: "router", required: true, meaning: "name of this router, as in its certificate: spiffe://longline/router/<name>",
		set: text(func(c *Config) *string { return &c.Router }, isRouterName)},
	{path: "listen", required: true, meaning: "host:port of the HTTPS listener for the portal",
		set: text(func(c *Config) *string { return &c.Listen }, isAddress)},
	{path: "state_dir", standard: "/var/lib/longline", meaning: "folder of the intent, the journal and unsent reports; only one agent may use it at a time",
		set: path(func(c *Config) *string { return &c.StateDir })},
	{path: "control_socket", meaning: "Unix socket, mode 0600, for the commands on this machine; control.sock in state_dir if absent",
		set: path(func(c *Config) *string { return &c.ControlSocket })},
	{path: "drift", standard: "auto", meaning: "what happens when others change the agent's objects: auto repairs them, hold reports the change until the portal sends the intent again",
		set: text(func(c *Config) *string { return &c.Drift }, isOneOf("auto", "hold"))},
	{path: "adoption", standard: "refused", meaning: "whether the portal may take over lines that others made: allowed or refused; a line that was taken over can be changed and removed",
		set: text(func(c *Config) *string { return &c.Adoption }, isOneOf("allowed", "refused"))},
	{path: "tls.ca", required: true, meaning: "PEM file of the CA of portal and routers",
		set: path(func(c *Config) *string { return &c.TLS.CA })},
	{path: "tls.certificate", required: true, meaning: "PEM file of this router's certificate; read for each connection",
		set: path(func(c *Config) *string { return &c.TLS.Certificate })},
	{path: "tls.key", required: true, meaning: "PEM file of its private key",
		set: path(func(c *Config) *string { return &c.TLS.Key })},
	{path: "tls.revoked", meaning: "file with fingerprints of portal certificates to refuse: a SHA-256 fingerprint in each line (64 hexadecimal digits, colons allowed), # begins a comment; read for each request, and all requests are refused while it cannot be read",
		set: path(func(c *Config) *string { return &c.TLS.Revoked })},
	{path: "vpp.api_socket", standard: "/run/vpp/api.sock", meaning: "VPP's binary API (socksvr in its startup.conf); its folder is locked",
		set: path(func(c *Config) *string { return &c.VPP.APISocket })},
	{path: "vpp.stats_socket", standard: "/run/vpp/stats.sock", meaning: "VPP's stats segment (statseg in its startup.conf)",
		set: path(func(c *Config) *string { return &c.VPP.StatsSocket })},
	{path: "vpp.cli_socket", standard: "/run/vpp/cli.sock", meaning: "VPP's command line (cli-listen in its startup.conf), used only for pings; without it round trips are not measured",
		set: path(func(c *Config) *string { return &c.VPP.CLISocket })},
	{path: "vpp.full_look", standard: "10m", meaning: "interval of full reads of VPP, in addition to quick reads every 30 s and after events, 10s to 24h",
		set: duration(func(c *Config) *time.Duration { return &c.VPP.FullObservation }, 10*time.Second, 24*time.Hour)},
	{path: "vpp.path_watch", standard: "auto", meaning: "whether VPP watches the paths to other routers by multihop BFD: auto, where it can and the portal requests it; or off, for a VPP next to a routing daemon that uses multihop BFD, because VPP would take all packets to UDP port 4784",
		set: text(func(c *Config) *string { return &c.VPP.PathWatch }, isOneOf("auto", "off"))},
	{path: "vpp.vppcfg", standard: "absent", meaning: "whether vppcfg configures this VPP too: absent, or present; then sub-interfaces and tunnels get the L3 MTU of their port, as vppcfg requires for cross-connects, and vppcfg finds nothing to change in the output of the command vppcfg",
		set: withEarlierNames(map[string]string{"beside": "present"}, text(func(c *Config) *string { return &c.VPP.Vppcfg }, isOneOf("absent", "present")))},
	{path: "vpp.default_routes", standard: "count", meaning: "whether a default route makes another router's tunnel address reachable: count (yes), or ignored (no, for a network whose default route leads to the Internet)",
		set: text(func(c *Config) *string { return &c.VPP.DefaultRoutes }, isOneOf("count", "ignored"))},
	{path: "report.url", meaning: "https URL of the portal's agent API; nothing is reported if absent",
		set: text(func(c *Config) *string { return &c.Report.URL }, isHTTPS)},
	{path: "report.interval", standard: "10s", meaning: "length of a counter sample, 1s to 1h",
		set: duration(func(c *Config) *time.Duration { return &c.Report.Interval }, time.Second, time.Hour)},
	{path: "report.store_limit", standard: "512MiB", meaning: "disk space for samples that the portal has not accepted yet, 1MiB to 1TiB; the oldest are dropped first",
		set: size(func(c *Config) *int64 { return &c.Report.StoreLimit }, 1<<20, 1<<40)},
	{path: "metrics.listen", meaning: "host:port of a plain HTTP listener with /metrics, /healthz and /readyz for Prometheus; none if absent",
		set: text(func(c *Config) *string { return &c.Metrics.Listen }, isAddress)},
	{path: "snmp.agentx", meaning: "Unix socket where snmpd accepts subagents (agentXSocket), such as /var/agentx/master, to add VPP's interfaces to its IF-MIB; none if absent",
		set: path(func(c *Config) *string { return &c.SNMP.AgentX })},
}

func isSection(path string) bool {
	return slices.ContainsFunc(keys, func(k key) bool { return strings.HasPrefix(k.path, path+".") })
}

// Reference writes all keys with their meanings and default values.
func Reference(w io.Writer) {
	for _, k := range keys {
		note := "optional"
		switch {
		case k.required:
			note = "required"
		case k.standard != "":
			note = "default " + k.standard
		}
		fmt.Fprintf(w, "  %s (%s)\n        %s\n", k.path, note, k.meaning)
	}
}

func text(field func(*Config) *string, check func(string) error) func(*Config, any, string) error {
	return func(c *Config, value any, _ string) error {
		s, ok := value.(string)
		if !ok || s == "" {
			return fmt.Errorf("%v is not text", value)
		}
		*field(c) = s
		return check(s)
	}
}

// withEarlierNames also accepts the names that values had in earlier releases.
func withEarlierNames(names map[string]string, set func(*Config, any, string) error) func(*Config, any, string) error {
	return func(c *Config, value any, folder string) error {
		if s, ok := value.(string); ok && names[s] != "" {
			value = names[s]
		}
		return set(c, value, folder)
	}
}

func path(field func(*Config) *string) func(*Config, any, string) error {
	return func(c *Config, value any, folder string) error {
		s, ok := value.(string)
		if !ok || s == "" {
			return fmt.Errorf("%v is not a path", value)
		}
		if !filepath.IsAbs(s) {
			s = filepath.Join(folder, s)
		}
		*field(c) = s
		return nil
	}
}

func duration(field func(*Config) *time.Duration, least, most time.Duration) func(*Config, any, string) error {
	return func(c *Config, value any, _ string) error {
		s, _ := value.(string)
		d, err := time.ParseDuration(s)
		switch {
		case err != nil:
			return fmt.Errorf(`%v is not a duration such as "10s"`, value)
		case d < least || d > most:
			return fmt.Errorf("%s is not in %s..%s", d, least, most)
		}
		*field(c) = d
		return nil
	}
}

// sizes are the units of IEC 80000-13. "GB" and similar units are left out because they are ambiguous.
var sizes = map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}

var sizeForm = regexp.MustCompile(`^([0-9]{1,9})([KMGT]iB)$`)

func size(field func(*Config) *int64, least, most int64) func(*Config, any, string) error {
	return func(c *Config, value any, _ string) error {
		s, _ := value.(string)
		parts := sizeForm.FindStringSubmatch(s)
		if parts == nil {
			return fmt.Errorf(`%v is not a size such as "512MiB"`, value)
		}
		n, err := strconv.ParseInt(parts[1], 10, 64)
		if err != nil {
			return err
		}
		if n > most/sizes[parts[2]] || n*sizes[parts[2]] < least {
			return fmt.Errorf("%s is not in %d..%d bytes", s, least, most)
		}
		*field(c) = n * sizes[parts[2]]
		return nil
	}
}

func isOneOf(values ...string) func(string) error {
	return func(s string) error {
		if !slices.Contains(values, s) {
			return fmt.Errorf("%q is not one of %s", s, strings.Join(values, ", "))
		}
		return nil
	}
}

var routerName = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)

func isRouterName(s string) error {
	if !routerName.MatchString(s) {
		return fmt.Errorf("%q does not match %s", s, routerName)
	}
	return nil
}

func isAddress(s string) error {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return err
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("port %q is not in 1..65535", port)
	}
	return nil
}

func isHTTPS(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%q is not an https URL", s)
	}
	if u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return fmt.Errorf("%q has a user, a query or a fragment, which the portal's URL must not have", s)
	}
	return nil
}
