package converge

import (
	"bytes"
	"cmp"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	interfaces "go.fd.io/govpp/binapi/interface"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/vppcfg"
)

// operatorsVppcfg names the objects of newVppcfgRouter without any line.
const operatorsVppcfg = `# core router
loopbacks:
  loop0: {mtu: 9000, addresses: [10.255.0.1/32, "fd00:255::1/128"]}
  loop100: {mtu: 9000}
  loop101: {mtu: 9000}
  loop102: {mtu: 9000}
  loop103: {mtu: 9000}
interfaces:
  memif0/0: # customers in Zurich
    mtu: 9000
    sub-interfaces:
      4000: {mtu: 1500, addresses: [192.0.2.1/24]} # the operator's own
  memif0/1:
    mtu: 1500
  memif0/2: {mtu: 9000}
`

// vppcfgRunner runs vppcfg against a real VPP. VPPCFG names the program if it is not in PATH.
type vppcfgRunner struct {
	t               *testing.T
	program, socket string
	messages        string // folder of the message definitions
}

// newVppcfgRouter has three ports that vppcfg treats as physical. The first has an operator's VLAN.
func newVppcfgRouter(t *testing.T) (*router, vppcfgRunner) {
	t.Helper()
	program, err := exec.LookPath(cmp.Or(os.Getenv("VPPCFG"), "vppcfg"))
	if err != nil {
		t.Skipf("SKIPPED, NOT TESTED WITH VPPCFG: %v (set VPPCFG, or put it in PATH)", err)
	}
	r, real := newRealRouterWith(t, "memif")
	install, err := realvpp.Find()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"create interface memif id 0 master", "create interface memif id 1 master", "create interface memif id 2 master",
		"set interface mtu 1500 memif0/1",
		"set interface state memif0/0 up", "set interface state memif0/1 up", "set interface state memif0/2 up",
		"create sub-interfaces memif0/0 4000", "set interface state memif0/0.4000 up",
		"set interface mtu packet 1500 memif0/0.4000", "set interface ip address memif0/0.4000 192.0.2.1/24",
	} {
		if _, err := real.CLI(line); err != nil {
			t.Fatal(err)
		}
	}
	return r, vppcfgRunner{t, program, real.APISocket(), filepath.Join(filepath.Dir(filepath.Dir(install.Binary)), "share/vpp/api")}
}

// plan checks the file with vppcfg and returns the lines of VPP's CLI that vppcfg plans, or why it makes no
// plan.
func (v vppcfgRunner) plan(file []byte) (lines []string, refusal string) {
	v.t.Helper()
	path := filepath.Join(v.t.TempDir(), "vppcfg.yaml")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		v.t.Fatal(err)
	}
	if said, err := exec.CommandContext(v.t.Context(), v.program, "check", "-c", path).CombinedOutput(); err != nil {
		v.t.Fatalf("vppcfg check: %v\n%s\n%s", err, said, file)
	}
	command := exec.CommandContext(v.t.Context(), v.program, "plan", "-c", path, "-a", v.socket, "-j", v.messages)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			v.t.Fatal(err)
		}
		return nil, stderr.String()
	}
	for line := range strings.Lines(stdout.String()) {
		if !strings.HasPrefix(line, "comment ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines, ""
}

// mustRemove expects a plan with these lines. Without VPP's ACL plugin, vppcfg 0.0.7 cannot plan to remove
// an interface, and fails (cache_remove_interface in vpp/vppapi.py).
func (v vppcfgRunner) mustRemove(lines []string, refusal string, wanted ...string) {
	v.t.Helper()
	if strings.Contains(refusal, "ACL API not found") && strings.Contains(refusal, "cache_remove_interface") {
		return
	}
	for _, line := range wanted {
		if refusal != "" || !slices.Contains(lines, line) {
			v.t.Errorf("%q is not in %q %s", line, lines, refusal)
		}
	}
}

func (r *router) vppcfgPart() *vppcfg.Part {
	r.t.Helper()
	stored, _ := r.store.Current()
	todo, snapshot, err := r.Plan(r.t.Context(), stored)
	if err != nil {
		r.t.Fatal(err)
	}
	return vppcfg.Of(snapshot, todo, stored)
}

func (r *router) withVppcfg() []byte {
	r.t.Helper()
	whole, err := r.vppcfgPart().Merge([]byte(operatorsVppcfg))
	if err != nil {
		r.t.Fatal(err)
	}
	return whole
}

// linesForVppcfg returns lines of every kind that a file of vppcfg can name.
func linesForVppcfg() []intent.End {
	v6 := vxlanEnd(2, "memif0/0")
	v6.Access.Tagging, v6.Access.Inner = intent.QinQ, 7
	v6.Tunnel.Local, v6.Tunnel.Remote = locals[6], remotes[6]
	ad := vxlanEnd(3, "memif0/0")
	ad.Access.Tagging, ad.Access.Outer, ad.Access.Inner = intent.Dot1ad, 300, 8
	loose := vxlanEnd(4, "memif0/1")
	loose.Access.Exact = false
	whole := vxlanEnd(5, "memif0/2")
	whole.Access = intent.Access{Interface: "memif0/2", Tagging: intent.Untagged, Exact: true}
	suspended := vxlanEnd(6, "memif0/0")
	suspended.AdminUp = false
	tested := vxlanEnd(7, "memif0/0")
	tested.Testing = true
	overGRE := vxlanEnd(8, "memif0/0")
	overGRE.Tunnel = intent.Tunnel{Encapsulation: intent.GRE, Local: locals[4], Remote: remotes[4]}
	near, far := vxlanEnd(9, "memif0/0"), vxlanEnd(9, "memif0/1")
	near.Tunnel, far.Tunnel = intent.Tunnel{Encapsulation: intent.L2XC}, intent.Tunnel{Encapsulation: intent.L2XC}
	far.Key.End = "z"
	policed := vxlanEnd(10, "memif0/0")
	policed.Bandwidth = intent.Bandwidth{CIR: 1e8, CBS: 1e5}
	probe := vxlanEnd(11, "memif0/0")
	probe.Access, probe.Testing = intent.Access{}, true
	return []intent.End{vxlanEnd(1, "memif0/0"), v6, ad, loose, whole, suspended, tested, overGRE, near, far, policed, probe}
}

func TestPlanOfVppcfgIsEmptyOnlyWithTheAgentsPart(t *testing.T) {
	r, v := newVppcfgRouter(t)
	if lines, refusal := v.plan([]byte(operatorsVppcfg)); len(lines) != 0 || refusal != "" {
		t.Fatalf("the operator's own file is to fit before there is any line: %q %s", lines, refusal)
	}
	r.options.PortMTUs = true
	outcome := r.put(linesForVppcfg())
	for _, e := range outcome.Ends {
		if e.Status != "verified" && e.Status != "testing" {
			t.Errorf("%s is %s: %+v", e.Key, e.Status, e.Reason)
		}
	}
	part := r.vppcfgPart()
	if len(part.Unnamed) != 0 {
		t.Errorf("unnamed: %+v", part.Unnamed)
	}
	whole := r.withVppcfg()
	t.Logf("%s", whole)
	if lines, refusal := v.plan(whole); len(lines) != 0 || refusal != "" {
		t.Errorf("vppcfg would do %s\n%s", strings.Join(lines, "\n"), refusal)
	}

	if _, refusal := v.plan([]byte(operatorsVppcfg)); !strings.Contains(refusal, "Not all PHYs in VPP exist in the config") {
		t.Errorf("with GRE and without the agent's part vppcfg must stop: %s", refusal)
	}
	var left []intent.End
	for _, e := range linesForVppcfg() {
		if e.Tunnel.Encapsulation != intent.GRE {
			left = append(left, e)
		}
	}
	r.put(left, tombstone(vxlanEnd(8, "memif0/0")))
	lines, refusal := v.plan([]byte(operatorsVppcfg))
	t.Logf("without our part: %s%s", strings.Join(lines, "\n"), refusal)
	v.mustRemove(lines, refusal, "set interface l3 memif0/0.101", "delete sub memif0/0.101", "create vxlan tunnel instance 0 src 10.255.0.1 dst 10.255.0.2 vni 1001 del")
	unconnected := strings.Replace(string(r.withVppcfg()), "                l2xc: vxlan_tunnel0\n", "", 1)
	unconnected = strings.Replace(unconnected, "l2xc: vxlan_tunnel0\n", "state: up\n", 1)
	want := []string{"set interface l2 tag-rewrite memif0/0.101 disable", "set interface l3 memif0/0.101"}
	if lines, refusal = v.plan([]byte(unconnected)); !slices.Equal(lines, want) {
		t.Errorf("with a cross-connect less vppcfg would do %q %s", lines, refusal)
	}
	if lines, refusal := v.plan(r.withVppcfg()); len(lines) != 0 || refusal != "" {
		t.Errorf("after a line has gone vppcfg would do %q %s", lines, refusal)
	}
}

func TestPlanOfVppcfgSetsOnlyMTUsWithoutPortMTUs(t *testing.T) {
	r, v := newVppcfgRouter(t)
	r.put([]intent.End{vxlanEnd(1, "memif0/0"), vxlanEnd(2, "memif0/1")})
	lines, refusal := v.plan(r.withVppcfg())
	want := []string{"set interface mtu packet 1500 vxlan_tunnel1", "set interface mtu packet 9000 memif0/0.101", "set interface mtu packet 1500 memif0/1.102"}
	if refusal != "" || strings.Join(lines, "|") != strings.Join(want, "|") {
		t.Errorf("vppcfg would do %q %s", lines, refusal)
	}
	r.options.PortMTUs = true // after a restart of the agent
	r.Converge(t.Context()).mustAllBe(t, "verified")
	if lines, refusal = v.plan(r.withVppcfg()); len(lines) != 0 || refusal != "" {
		t.Errorf("with its MTUs vppcfg would do %q %s", lines, refusal)
	}
}

// For interfaces that a file cannot name, the reported consequences are compared with vppcfg's behaviour.
func TestReportedConsequencesMatchVppcfg(t *testing.T) {
	geneve := vxlanEnd(1, "memif0/0")
	geneve.Tunnel.Encapsulation = intent.GENEVE
	overGRE := vxlanEnd(1, "memif0/1") // the port's MTU of 1500 is lower than that of a GRE tunnel
	overGRE.Tunnel = intent.Tunnel{Encapsulation: intent.GRE, Local: locals[4], Remote: remotes[4]}
	here, there := vxlanEnd(1, ""), vxlanEnd(2, "")
	here.Access, there.Access, here.Testing, there.Testing = intent.Access{}, intent.Access{}, true, true
	there.Tunnel.Remote, there.Tunnel.VNI = netip.MustParseAddr("10.255.0.3"), here.Tunnel.VNI
	for name, c := range map[string]struct {
		ends    []intent.End
		refusal string // "" if the plan removes the interface
		removes string
	}{
		"GENEVE":              {[]intent.End{geneve}, "Interface geneve_tunnel0 does not exist in the config", ""},
		"GRE on a small port": {[]intent.End{overGRE}, "Interface gre0 does not exist in the config", ""},
		"a VNI twice":         {[]intent.End{here, there}, "", "create vxlan tunnel instance 1 src 10.255.0.1 dst 10.255.0.3 vni 1001 del"},
	} {
		t.Run(name, func(t *testing.T) {
			r, v := newVppcfgRouter(t)
			r.options.PortMTUs = true
			r.put(c.ends)
			unnamed := r.vppcfgPart().Unnamed
			if len(unnamed) == 0 || unnamed[0].Stops != (c.refusal != "") {
				t.Fatalf("unnamed: %+v", unnamed)
			}
			lines, refusal := v.plan(r.withVppcfg())
			if c.refusal == "" {
				v.mustRemove(lines, refusal, c.removes)
			} else if !strings.Contains(refusal, c.refusal) {
				t.Errorf("reported: %s. But vppcfg does %q %s", unnamed[0].Consequence(), lines, refusal)
			}
		})
	}
}

// VPP forwards frames that are larger than the L3 MTU of the cross-connected interfaces.
func TestMTUOfThePortDoesNotLimitFramesOfALine(t *testing.T) {
	r, real := newRealRouterWith(t)
	cli := func(line string) string {
		t.Helper()
		said, err := real.CLI(line)
		if err != nil {
			t.Fatal(err)
		}
		return said
	}
	for _, line := range []string{
		"create packet-generator interface pg0", "create packet-generator interface pg1", "set interface state pg0 up", "set interface state pg1 up",
		"set interface mtu packet 1500 pg0", "set interface ip address pg1 10.0.0.1/24", "set ip neighbor pg1 10.0.0.2 02:00:00:00:00:02",
		"ip route add 10.255.0.2/32 via 10.0.0.2",
	} {
		cli(line)
	}
	r.options.PortMTUs = true
	r.put([]intent.End{vxlanEnd(1, "pg0")}).mustAllBe(t, "verified")
	s := r.snapshot()
	if sub, tunnel := s.ByName("pg0.101"), s.ByName("vxlan_tunnel0"); sub.L3MTU != 1500 || tunnel.L3MTU != 1500 {
		t.Fatalf("the MTUs are %d and %d", sub.L3MTU, tunnel.L3MTU)
	}
	cli("packet-generator new { name x limit 10 size 4000-4000 interface pg0 node ethernet-input data { hex 0x02000000000a02000000000b8100006508004500000000000000000000000000000000000000 } }")
	cli("packet-generator enable x")
	var shown string
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if shown = cli("show interface pg1"); strings.Contains(strings.Join(strings.Fields(shown), " "), "tx packets 10 ") {
			return
		}
	}
	t.Errorf("of 10 frames of 4,000 bytes went out: %s", shown)
}

// TestLinesFollowTheMTUOfTheirPortWithoutDrift: an operator who changes the MTU of a port changes no line, so
// this is no drift. The lines follow even under ReportOnly.
func TestLinesFollowTheMTUOfTheirPortWithoutDrift(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.options.PortMTUs = true
		r.put([]intent.End{vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[0])}).mustAllBe(t, "verified")
		mtu := uint32(1500)
		for _, repair := range []Repair{Auto, ReportOnly} {
			r.options.Repair = repair
			mtu -= 100
			r.must(&interfaces.SwInterfaceSetMtu{SwIfIndex: r.index(r.ports[0]), Mtu: []uint32{mtu, 0, 0, 0}})
			r.repair(t.Context())
			state, err := r.ObservedStateToReport(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(state.Drift) != 0 || len(state.Contested) != 0 {
				t.Errorf("%s: reported as a foreign change: %v %v", repair, state.Drift, state.Contested)
			}
			for _, sub := range state.Snapshot.Subs(uint32(r.index(r.ports[0]))) {
				if sub.L3MTU != mtu {
					t.Errorf("%s: %s has %d and its port %d", repair, sub.Name, sub.L3MTU, mtu)
				}
			}
		}
	})
}
