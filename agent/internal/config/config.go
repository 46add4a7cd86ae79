// Package config reads the agent's YAML file. One table of keys checks the file and generates the
// reference.
package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
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
