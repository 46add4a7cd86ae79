package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/realvpp"
)

// bootSystemd is a script that starts systemd in its own mount, process and control-group namespaces.
// /usr/bin, /etc and /var/lib are those of this machine, overlaid with the folder $1. $2 is the folder of
// VPP's sockets, and $3 the version of the control groups.
const bootSystemd = `set -eu
mount -t proc proc /proc
# The kernel refuses a second mount of version 2 directly on the first one.
mount -t tmpfs tmpfs /sys/fs/cgroup
if [ "$3" = 2 ]; then
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
else
    mkdir /sys/fs/cgroup/systemd
    mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
fi
for path in /usr/bin /etc /var/lib; do
    mkdir -p "$1/upper$path" "$1/work$path"
    mount -t overlay overlay -o "lowerdir=$path,upperdir=$1/upper$path,workdir=$1/work$path" "$path"
done
mount -t tmpfs tmpfs /run
mkdir /run/vpp
mount --bind "$2" /run/vpp
mkdir "$1/units"
for name in sysinit.target basic.target shutdown.target network-online.target multi-user.target; do
    cp "/lib/systemd/system/$name" "$1/units/"
done
mount --bind "$1/units" /lib/systemd/system
exec env -i PATH=/usr/bin:/bin container=longline /lib/systemd/systemd --system --unit=multi-user.target --log-target=console --log-level=warning
`

// enterGroup is a script that moves its process into the control group $1, and then starts the other
// arguments in a control-group namespace with this group as the root. No process outside of the namespace
// is in the group: version 2 enables no controllers in a group that contains processes.
const enterGroup = `echo 0 >"$1/cgroup.procs" && shift && exec unshare --cgroup "$@"`

// controlGroup is the group of a separate systemd.
type controlGroup struct {
	path    string
	version string // "1" or "2"
}

// newControlGroupOrSkip makes a control group for a systemd. It skips the test on a machine that cannot
// start a separate systemd.
func newControlGroupOrSkip(t *testing.T) controlGroup {
	t.Helper()
	const skipped = "SKIPPED, NOT TRIED WITH A REAL SYSTEMD"
	if os.Geteuid() != 0 {
		t.Skip(skipped + ": only root can start a systemd")
	}
	for _, program := range []string{"/lib/systemd/systemd", "/usr/bin/systemctl", "/usr/bin/unshare", "/usr/bin/nsenter"} {
		if _, err := os.Stat(program); err != nil {
			t.Skipf("%s: %v", skipped, err)
		}
	}
	if out, err := exec.Command("unshare", "--mount", "--pid", "--fork", "--cgroup", "true").CombinedOutput(); err != nil {
		t.Skipf("%s: it needs namespaces: %v %s", skipped, err, out)
	}
	var refused []error
	for _, candidate := range []struct{ parent, mark, version string }{
		{"/sys/fs/cgroup", "cgroup.controllers", "2"},
		{"/sys/fs/cgroup/unified", "cgroup.controllers", "2"}, // next to the first version
		{"/sys/fs/cgroup/systemd", "cgroup.procs", "1"},
	} {
		if _, err := os.Stat(filepath.Join(candidate.parent, candidate.mark)); err != nil {
			refused = append(refused, err)
			continue
		}
		path, err := os.MkdirTemp(candidate.parent, "longline-test-")
		if err != nil {
			refused = append(refused, err)
			continue
		}
		t.Cleanup(func() { removeGroup(t, path) })
		return controlGroup{path, candidate.version}
	}
	t.Skipf("%s: it needs a control group:\n%v", skipped, errors.Join(refused...))
	return controlGroup{}
}

// removeGroup removes a control group and its children after their processes have ended.
func removeGroup(t *testing.T, group string) {
	for deadline := time.Now().Add(testTimeout); ; time.Sleep(20 * time.Millisecond) {
		var all []string
		_ = filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				all = append(all, path)
			}
			return nil
		})
		for _, path := range slices.Backward(all) {
			_ = os.Remove(path)
		}
		if _, err := os.Stat(group); err != nil {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("the control group %s is left", group)
			return
		}
	}
}

// machine is a systemd with the agent's packaged unit.
type machine struct {
	t       *testing.T
	process *exec.Cmd
	output  processOutput
}

// boot starts systemd. files maps paths on the machine to their contents.
func boot(t *testing.T, group controlGroup, sockets string, files map[string]string) *machine {
	t.Helper()
	folder := t.TempDir()
	for path, content := range files {
		path = filepath.Join(folder, "upper", path)
		allow(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o755))
	}
	m := &machine{t: t, output: newProcessOutput(t)}
	m.process = exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child",
		"sh", "-c", enterGroup, "sh", group.path, "sh", "-c", bootSystemd, "sh", folder, sockets, group.version)
	m.process.Stdout, m.process.Stderr = m.output.File, m.output.File
	m.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	allow(t, m.process.Start())
	t.Cleanup(func() {
		_ = m.process.Process.Kill()
		_ = m.process.Wait()
	})
	for deadline := time.Now().Add(testTimeout); ; time.Sleep(50 * time.Millisecond) {
		if out, err := m.run("systemctl", "is-active", "multi-user.target"); err == nil && strings.TrimSpace(out) == "active" {
			return m
		} else if time.Now().After(deadline) {
			t.Fatalf("systemd does not start: %v %s\n%s", err, out, m.output)
		}
	}
}

// run runs a program on the machine.
func (m *machine) run(program string, arguments ...string) (string, error) {
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", m.process.Process.Pid, m.process.Process.Pid))
	if err != nil {
		return "", err
	}
	first := strings.Fields(string(children))
	if len(first) == 0 {
		return "", errors.New("systemd is not running")
	}
	out, err := exec.Command("nsenter", append([]string{"-t", first[0], "-m", "-p", "-C", program}, arguments...)...).CombinedOutput()
	return string(out), err
}

func (m *machine) systemctl(arguments ...string) string {
	m.t.Helper()
	out, err := m.run("systemctl", arguments...)
	if err != nil {
		status, _ := m.run("systemctl", "status", "--no-pager", "longline-agent.service")
		m.t.Fatalf("systemctl %v: %v\n%s\n%s\n%s", arguments, err, out, status, m.output)
	}
	return strings.TrimSpace(out)
}

// script runs a script of the package as dpkg does.
func (m *machine) script(name string, arguments ...string) {
	m.t.Helper()
	as := []string{"DPKG_MAINTSCRIPT_PACKAGE=longline-agent", "DPKG_MAINTSCRIPT_NAME=" + strings.TrimPrefix(name, "longline-"), name}
	if out, err := m.run("env", append(as, arguments...)...); err != nil {
		m.t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

var packets = regexp.MustCompile(`(?m)^\s*(?:\S+\s+.*)?(rx|tx) packets\s+(\d+)`)

// count reads a counter of an interface.
func count(t *testing.T, v *realvpp.VPP, name, direction string) int {
	t.Helper()
	text, err := v.CLI("show interface " + name)
	allow(t, err)
	for _, found := range packets.FindAllStringSubmatch(text, -1) {
		if found[1] == direction {
			n, err := strconv.Atoi(found[2])
			allow(t, err)
			return n
		}
	}
	return 0
}

// TestSystemctlAndThePackageRestartTheAgentWithoutALostFrame uses the packaged unit and the package's
// scripts under a separate systemd, while frames pass through a real VPP.
func TestSystemctlAndThePackageRestartTheAgentWithoutALostFrame(t *testing.T) {
	group := newControlGroupOrSkip(t)
	real := realvpp.StartOrSkip(t, realvpp.Options{Plugins: []string{"ping"}, Group: vppGroup})
	a := newAgent(t)
	folder := filepath.Dir(real.APISocket())
	files := map[string]string{"/etc/machine-id": strings.Repeat("1", 32) + "\n"}
	add := func(to, from string) {
		t.Helper()
		content, err := os.ReadFile(from)
		allow(t, err)
		files[to] = string(content)
	}
	// The agent's own folder, /var/lib/longline, contains the certificates, as on a router.
	tls := func(name string) string { return "/var/lib/longline/tls/" + name }
	text, err := os.ReadFile(a.config)
	allow(t, err)
	config := string(text)
	for _, key := range []string{"ca", "certificate", "key"} {
		path := regexp.MustCompile(`\b` + key + `: ([^,}]+)`).FindStringSubmatch(config)[1]
		add(tls(key+".pem"), path)
		config = strings.ReplaceAll(config, path, tls(key+".pem"))
	}
	config = strings.NewReplacer("state_dir: state\n", "", ", revoked: revoked", "", a.sim.APISocket(), "/run/vpp/"+filepath.Base(real.APISocket()),
		a.sim.StatsSocket(), "/run/vpp/"+filepath.Base(real.StatsSocket())).Replace(config)
	files["/etc/longline/agent.yaml"] = config
	add("/usr/bin/longline-agent", a.built(t))
	add("/etc/systemd/system/longline-agent.service", unit)
	for _, script := range []string{"postinst", "prerm"} {
		add("/usr/bin/longline-"+script, "../../../deploy/debian/"+script)
	}
	add("/etc/passwd", "/etc/passwd")
	files["/etc/passwd"] += fmt.Sprintf("longline:x:%d:%d::/var/lib/longline:/usr/sbin/nologin\n", serviceID, serviceID)
	add("/etc/group", "/etc/group")
	files["/etc/group"] += fmt.Sprintf("longline:x:%d:\nvpp:x:%d:\n", serviceID, vppGroup)

	for port := range 2 {
		for _, line := range []string{"create packet-generator interface pg%d", "set interface state pg%d up"} {
			_, err := real.CLI(fmt.Sprintf(line, port))
			allow(t, err)
		}
	}
	m := boot(t, group, folder, files)
	if out, err := m.run("chown", "-R", "longline:longline", "/var/lib/longline"); err != nil {
		t.Fatal(err, out)
	}
	m.systemctl("start", "longline-agent.service")
	a.awaitReady()
	in := &intent.Intent{Router: "rhino", Generation: 1}
	for n, side := range []string{"a", "z"} {
		in.Present = append(in.Present, intent.End{
			Key: intent.Key{VLL: "00000000-0000-4000-8000-000000000001", End: side}, Revision: 1, AdminUp: true, Frame: 1514,
			Access: intent.Access{Interface: fmt.Sprintf("pg%d", n), Tagging: intent.Dot1q, Outer: uint16(100 + n), Exact: true},
			Tunnel: intent.Tunnel{Encapsulation: intent.L2XC},
		})
	}
	if answer := a.sendBody("PUT", "/v1/intent", in.Document()); answer["applied"] != true {
		t.Fatalf("the agent answered %v", answer)
	}
	const stream = "packet-generator new { name frames limit 0 rate 2000 size 64-64 interface pg0 node ethernet-input data { hex " +
		"0x02000000000a020000000001810000640800" + "00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000 } }"
	_, err = real.CLI(stream)
	allow(t, err)
	_, err = real.CLI("packet-generator enable-stream frames")
	allow(t, err)
	running := func() string {
		t.Helper()
		for deadline := time.Now().Add(testTimeout); a.status("/readyz") != 200; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the agent is not ready", m.systemctl("status", "--no-pager", "longline-agent.service"))
			}
		}
		return m.systemctl("show", "--property=MainPID", "--value", "longline-agent.service")
	}
	for name, do := range map[string]func(){
		"restart":         func() { m.systemctl("restart", "longline-agent.service") },
		"stop and start":  func() { m.systemctl("stop", "longline-agent.service"); m.systemctl("start", "longline-agent.service") },
		"kill":            func() { m.systemctl("kill", "--signal=KILL", "longline-agent.service") },
		"package upgrade": func() { m.script("longline-postinst", "configure", "1.0") },
	} {
		before, passed := running(), count(t, real, "pg1", "tx")
		do()
		for deadline := time.Now().Add(testTimeout); running() == before; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: it is still process %s", name, before)
			}
		}
		if now := count(t, real, "pg1", "tx"); now <= passed {
			t.Errorf("%s: no frame passed meanwhile", name)
		}
	}
	m.script("longline-prerm", "remove")
	if state, _ := m.run("systemctl", "is-active", "longline-agent.service"); strings.TrimSpace(state) != "inactive" {
		t.Errorf("after the package is removed the agent is %s", state)
	}
	passed := count(t, real, "pg1", "tx")
	for deadline := time.Now().Add(testTimeout); count(t, real, "pg1", "tx") == passed; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no frame passes without the agent")
		}
	}
	_, err = real.CLI("packet-generator disable-stream frames")
	allow(t, err)
	// The generator counts up to 256 frames on pg0 that it has not delivered yet. VPP counts a frame that
	// arrived and was dropped as a drop of pg0.
	arrived, left := count(t, real, "pg0.100", "rx"), count(t, real, "pg1", "tx")
	counters, err := real.CLI("show interface")
	allow(t, err)
	lost, err := real.CLI("show errors")
	allow(t, err)
	if arrived == 0 || arrived != left || strings.Contains(counters, "drops") || strings.Contains(lost, "ethernet-input") {
		t.Errorf("%d frames arrived and %d left:\n%s\n%s", arrived, left, counters, lost)
	}
	t.Logf("%d frames arrived and %d left", arrived, left)
}
