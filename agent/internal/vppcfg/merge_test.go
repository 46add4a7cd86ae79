package vppcfg

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ours returns a line on a VLAN of a port, and a suspended line on a whole port. Both use VXLAN.
func ours() *Part {
	const one, two = "6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01", "6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a02"
	return &Part{
		Tunnels: []Tunnel{
			{Name: "vxlan_tunnel0", VLL: one, End: "a", Local: "10.255.0.1", Remote: "10.255.0.2", VNI: 70001},
			{Name: "vxlan_tunnel1", VLL: two, End: "z", Local: "2001:db8::1", Remote: "2001:db8::2", VNI: 70002},
		},
		Interfaces: []Interface{
			{Name: "TenGigabitEthernet3/0/0.101", VLL: one, End: "a", Kind: "subif", Port: "TenGigabitEthernet3/0/0", SubID: 101,
				Dot1q: 101, Exact: true, L2XC: "vxlan_tunnel0", MTU: 9000, AdminUp: true},
			{Name: "vxlan_tunnel0", VLL: one, End: "a", Kind: "vxlan", L2XC: "TenGigabitEthernet3/0/0.101", MTU: 9000, MTUNow: 9000, AdminUp: true},
			{Name: "TenGigabitEthernet3/0/1", VLL: two, End: "z", Kind: "port", L2XC: "vxlan_tunnel1", MTU: 1500, MTUNow: 1500},
			{Name: "vxlan_tunnel1", VLL: two, End: "z", Kind: "vxlan", L2XC: "TenGigabitEthernet3/0/1", MTU: 1500, MTUNow: 1500, AdminUp: true},
		},
	}
}

const operators = `# rhino, the operator's own
interfaces:
  TenGigabitEthernet3/0/0: # customers
    mtu: 9000
    sub-interfaces:
      # management
      10: {addresses: [192.0.2.1/24], mtu: 1500}
  TenGigabitEthernet3/0/1:
    mtu: 1500
loopbacks:
  loop0:
    addresses: [10.255.0.1/32, "2001:db8::1/128"] # tunnels end here
`

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTextOfThePart(t *testing.T) {
	got, err := ours().Text()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "part.yaml", got)
}

func TestMergeKeepsCommentsAndOrderOfTheFile(t *testing.T) {
	got, err := ours().Merge([]byte(operators))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "whole.yaml", got)
	again, err := ours().Merge(got)
	if err != nil || !strings.HasSuffix(string(again), string(got)) {
		t.Errorf("what is named already is to stay as it is: %v\n%s", err, again)
	}
}

func TestMergeReportsPlaceAndReasonOfEachDifference(t *testing.T) {
	const port = "  TenGigabitEthernet3/0/0: # customers\n"
	for name, c := range map[string]struct{ old, new, said string }{
		"the sub-interface leads elsewhere": {"      # management\n", "      101: {mtu: 9000, l2xc: TenGigabitEthernet3/0/1}\n",
			"interfaces.TenGigabitEthernet3/0/0.sub-interfaces.101: the file has l2xc TenGigabitEthernet3/0/1, and with line 6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01 it has l2xc vxlan_tunnel0"},
		"the sub-interface has addresses": {"      # management\n", "      101: {mtu: 9000, l2xc: vxlan_tunnel0, addresses: [192.0.2.9/24]}\n",
			".101: the file has addresses (1 of them), and with line 6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01 it has no addresses"},
		"the sub-interface has a Linux CP pair": {"      # management\n", "      101: {mtu: 9000, lcp: be1}\n", ".101: the file has lcp be1, and with line"},
		"the number has another VLAN": {"      # management\n", "      101: {mtu: 9000, l2xc: vxlan_tunnel0, encapsulation: {dot1q: 55}}\n",
			".101: the file has encapsulation dot1q 55, exact-match false, and with line"},
		"another number has the VLAN": {"      # management\n", "      7: {encapsulation: {dot1q: 101}}\n",
			"sub-interfaces.7: it takes the same frames as TenGigabitEthernet3/0/0.101 of line"},
		"the tunnel goes elsewhere": {"loopbacks:\n", "vxlan_tunnels: {vxlan_tunnel0: {local: 10.255.0.1, remote: 10.255.0.9, vni: 70001}}\nloopbacks:\n",
			"vxlan_tunnels.vxlan_tunnel0: the file has remote 10.255.0.9, and with line 6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01 it has remote 10.255.0.2"},
		"another tunnel has the VNI": {"loopbacks:\n", "vxlan_tunnels: {vxlan_tunnel9: {local: 10.255.0.1, remote: 10.255.0.9, vni: 70001}}\nloopbacks:\n",
			"vxlan_tunnels.vxlan_tunnel9: it has the VNI 70001, and so has vxlan_tunnel0 of line"},
		"the port is not named": {port, "  TenGigabitEthernet9/0/0:\n", "interfaces.TenGigabitEthernet3/0/0: the file does not name this port of line"},
		"the port has a smaller MTU": {port + "    mtu: 9000\n", port + "    mtu: 2000\n",
			"the file gives it an MTU of 2000 (without `mtu` vppcfg takes 1500), and TenGigabitEthernet3/0/0.101 of line 6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01 has 9000, as the port has in VPP; vppcfg wants no more than the port's: write `mtu: 9000`"},
		"the port is down":               {port, port + "    state: down\n", "the file has it down, and TenGigabitEthernet3/0/0.101 of line"},
		"the whole port has an address":  {"    mtu: 1500\nloop", "    mtu: 1500\n    addresses: [192.0.2.5/31]\nloop", "interfaces.TenGigabitEthernet3/0/1.addresses: line 6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a02 has the whole port"},
		"the whole port has another MTU": {"    mtu: 1500\nloop", "    mtu: 2000\nloop", "interfaces.TenGigabitEthernet3/0/1: the file gives it an MTU of 2000"},
		"the whole port is to be up":     {"    mtu: 1500\nloop", "    mtu: 1500\n    state: up\nloop", "interfaces.TenGigabitEthernet3/0/1.state: the file says up, and with line 6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a02 it is down"},
		"the port is an alias":           {port, "  x: &x {mtu: 9000}\n  TenGigabitEthernet3/0/0: *x\n  y:\n", "interfaces.TenGigabitEthernet3/0/0: it is an alias"},
		"sub-interfaces come from a merge": {"    mtu: 9000\n    sub-interfaces:\n      # management\n      10: {addresses: [192.0.2.1/24], mtu: 1500}\n", "    <<: {mtu: 9000, sub-interfaces: {10: {mtu: 1500}}}\n",
			"interfaces.TenGigabitEthernet3/0/0: it comes from a merge (<<)"},
		"it is no YAML":              {"interfaces:\n", "interfaces: {\n", "it is not YAML: yaml: "},
		"it is no file of vppcfg":    {operators, "- 1\n", "it is not a file of vppcfg"},
		"interfaces are no mapping":  {operators, "interfaces: 7\n", "interfaces: it is no mapping"},
		"an empty file has no ports": {operators, "", "it is not a file of vppcfg"},
	} {
		t.Run(name, func(t *testing.T) {
			file := strings.Replace(operators, c.old, c.new, 1)
			if file == operators {
				t.Fatal("nothing was replaced")
			}
			got, err := ours().Merge([]byte(file))
			if err == nil || !strings.Contains(err.Error(), c.said) || got != nil {
				t.Errorf("got %v\n%s", err, got)
			}
		})
	}
}

// TestMergeAcceptsAPortThatIsUpInTheFileAndShutDownInVPP: the port comes up again with the far end's link,
// so the operator need not edit the file.
func TestMergeAcceptsAPortThatIsUpInTheFileAndShutDownInVPP(t *testing.T) {
	part := ours()
	part.Interfaces[2].ShutDown = true
	for _, states := range [][2]string{{"", "    state: down\n"}, {"    state: up\n", "    state: up\n"}} {
		file := strings.Replace(operators, "    mtu: 1500\nloop", "    mtu: 1500\n"+states[0]+"loop", 1)
		got, err := part.Merge([]byte(file))
		if err != nil || !strings.Contains(string(got), states[1]) || strings.Count(string(got), "state: ") != 1 {
			t.Errorf("%v\n%s", err, got)
		}
		if !strings.HasPrefix(string(got), "# KEPT DOWN: TenGigabitEthernet3/0/1 of line ") {
			t.Errorf("nothing says why it is down:\n%s", got)
		}
	}
}

func TestMergeReportsAllErrorsTogether(t *testing.T) {
	_, err := ours().Merge([]byte("interfaces: {}\n"))
	if err == nil || strings.Count(err.Error(), "does not name this port") != 2 {
		t.Errorf("got %v", err)
	}
}

func TestMergeFillsAnEmptyPort(t *testing.T) {
	part := ours()
	part.Tunnels, part.Interfaces = part.Tunnels[:1], part.Interfaces[:2]
	part.Interfaces[0].MTU, part.Interfaces[1].MTU = 1500, 1500
	for _, empty := range []string{"", " {}", " ~"} {
		got, err := part.Merge([]byte("interfaces:\n  TenGigabitEthernet3/0/0:" + empty + "\n"))
		if err != nil || !strings.Contains(string(got), "  TenGigabitEthernet3/0/0:\n    sub-interfaces:\n      101:\n") {
			t.Errorf("%q: %v\n%s", empty, err, got)
		}
	}
}
