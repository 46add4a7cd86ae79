// Package config reads the agent's YAML file. Its keys are a table: the same one that checks the file
// prints the reference.
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
	StateDir      string // what has to survive a restart
	ControlSocket string // Unix socket of the commands plan and state
	Drift         string // "auto" or "hold": what becomes of what others changed
	Adoption      string // "allowed" or "refused": whether lines that others made may be taken over
	TLS           TLS
	VPP           VPP
	Report        Report
	Metrics       Metrics
	SNMP          SNMP
}

// TLS names PEM files: the CA, and this router's certificate and key. Revoked is a list of fingerprints, empty for
// none.
type TLS struct{ CA, Certificate, Key, Revoked string }

// VPP names VPP's sockets, how often all of it is read when nothing happens, and whether it watches paths.
type VPP struct {
	APISocket, StatsSocket, CLISocket string
	FullObservation                   time.Duration
	PathWatch                         string // "auto" or "off"
	Vppcfg                            string // "absent" or "beside"
	DefaultRoutes                     string // "count" or "ignored": whether a default route leads to other routers
}

// Report says where reports go; with an empty URL none are sent.
type Report struct {
	URL        string
	Interval   time.Duration
	StoreLimit int64 // bytes of counter samples kept on disk while the portal is away
}

// Metrics is the optional listener for Prometheus; with an empty Listen there is none.
type Metrics struct{ Listen string }

// SNMP is where snmpd takes subagents; with an empty AgentX the agent is none.
type SNMP struct{ AgentX string }

// maxSocketPath is what sockaddr_un holds, less its NUL (bytes).
const maxSocketPath = 107

// Load reads the file. Unknown keys, missing ones and wrong values are errors that begin with the key's path;
// all of them are named.
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
	if err := yaml.UnmarshalStrict(data, &tree); err != nil { // strict: a key that stands twice
		return nil, err
	}
	given := make(map[string]any)
	wrong := flatten("", tree, given)
	c := &Config{}
	for _, k := range keys {
		value, there := given[k.path]
		delete(given, k.path)
		switch {
		case there:
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
		wrong = append(wrong, fmt.Errorf("%s: there is no such key", path))
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

// flatten turns nested sections into dotted paths. Sections are known by the table: what is a section there
// has to be one here.
func flatten(prefix string, tree map[string]any, into map[string]any) (wrong []error) {
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		path := prefix + name
		section, nested := tree[name].(map[string]any)
		switch {
		case nested:
			wrong = append(wrong, flatten(path+".", section, into)...)
		case tree[name] == nil && isSection(path):
		case isSection(path):
			wrong = append(wrong, fmt.Errorf("%s: is a section with keys of its own", path))
		default:
			into[path] = tree[name]
		}
	}
	return wrong
}
