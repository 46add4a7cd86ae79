package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"longline.dev/agent/internal/vppsim"
)

func TestTheVppcfgCommandPrintsTheAgentsPartOrTheWholeFile(t *testing.T) {
	a := newAgentWith(t, func(c *vppsim.Config) { c.Interfaces[0].IPMTU = 9000 })
	a.start()
	a.awaitReady()
	a.put("vxlan4-dot1q.json")
	out, err := invoke(t, "vppcfg", "-config", a.config)
	if err != nil {
		t.Fatal(err)
	}
	wants(t, out, "vxlan_tunnels:\n  vxlan_tunnel0:\n    description: longline 6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01:a\n",
		"remote: 10.255.0.2\n    vni: 70001\n", "interfaces:\n", "  cust0:\n    sub-interfaces:\n", "l2xc: vxlan_tunnel0\n")
	file := filepath.Join(t.TempDir(), "vppcfg.yaml")
	for text, wanted := range map[string]string{
		"interfaces:\n  cust0: {mtu: 9000} # mine\n":             "  cust0:\n    mtu: 9000\n    sub-interfaces:\n",
		"# mine\ninterfaces:\n  cust0:\n    mtu: 9000 # large\n": "# mine\ninterfaces:\n  cust0:\n    mtu: 9000 # large\n    sub-interfaces:\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err = invoke(t, "vppcfg", "-with", file, "-config", a.config); err != nil {
			t.Fatal(err)
		}
		wants(t, out, wanted, "vxlan_tunnels:\n")
	}
	if err := os.WriteFile(file, []byte("interfaces: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err = invoke(t, "vppcfg", "-with", file, "-config", a.config); err == nil || out != "" ||
		!strings.Contains(err.Error(), file+" and this router's lines cannot be one file of vppcfg") || !strings.Contains(err.Error(), "interfaces.cust0: the file does not name this port") {
		t.Errorf("a file without the port: %q, %v", out, err)
	}
	if _, err = invoke(t, "vppcfg", "-with", file+".absent", "-config", a.config); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	var usage *usageError
	if _, err = invoke(t, "vppcfg", "-with", file, "-json", "-config", a.config); !errors.As(err, &usage) {
		t.Errorf("-with and -json: %v", err)
	}
}

func TestTheVppcfgCommandHasAnotherExitCodeIfObjectsHaveNoName(t *testing.T) {
	a := newAgent(t)
	a.start()
	a.awaitReady()
	a.put("geneve4-dot1ad.json")
	out, err := invoke(t, "vppcfg", "-config", a.config)
	var partly *partlyNamedError
	if !errors.As(err, &partly) || len(partly.unnamed) != 2 {
		t.Fatalf("got %v", err)
	}
	wants(t, err.Error(), "2 interfaces cannot be named in a file of vppcfg:", "geneve_tunnel0 of line", "vppcfg plans nothing on this router while it exists")
	wants(t, out, "# NOT NAMED: geneve_tunnel0 of line ")
}
