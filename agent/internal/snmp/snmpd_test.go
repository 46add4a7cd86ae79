package snmp

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// master is Debian's snmpd in its own folder, configured as in docs/operate/observability.md.
type master struct {
	t       *testing.T
	folder  string
	address string
	process *exec.Cmd
	ended   chan struct{}
}

// startMasterOrSkip starts a master with these additional options, and stops it at the end of the test.
func startMasterOrSkip(t *testing.T, options ...string) *master {
	t.Helper()
	for _, program := range []string{"/usr/sbin/snmpd", "/usr/bin/snmpbulkwalk", "/usr/bin/snmpget"} {
		if _, err := os.Stat(program); err != nil {
			t.Skipf("SKIPPED, NOT TESTED WITH A REAL SNMPD: %v (Debian: apt-get install snmpd snmp)", err)
		}
	}
	port, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &master{t: t, folder: t.TempDir(), address: port.LocalAddr().String()}
	port.Close()
	config := fmt.Sprintf("agentAddress udp:%s\nrocommunity public 127.0.0.1\nrwcommunity private 127.0.0.1\n"+
		"master agentx\nagentXSocket %s\nagentXPerms 0660 0770\n", m.address, m.socket())
	if err := os.WriteFile(filepath.Join(m.folder, "snmpd.conf"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	m.start(options...)
	t.Cleanup(m.stop)
	return m
}

func (m *master) socket() string { return filepath.Join(m.folder, "master") }

// log returns the path of the master's output. A test may read it while the master writes.
func (m *master) log() string { return filepath.Join(m.folder, "log") }

func (m *master) start(options ...string) {
	m.t.Helper()
	m.process = exec.Command("/usr/sbin/snmpd", append([]string{"-f", "-LOw", "-C", "-c", filepath.Join(m.folder, "snmpd.conf")}, options...)...)
	m.process.Env = append(os.Environ(), "SNMP_PERSISTENT_DIR="+filepath.Join(m.folder, "kept"), "MIBS=")
	output, err := os.OpenFile(m.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		m.t.Fatal(err)
	}
	defer output.Close()
	m.process.Stdout, m.process.Stderr = output, output
	if err := m.process.Start(); err != nil {
		m.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func(p *exec.Cmd) { _ = p.Wait(); close(ended) }(m.process)
	m.ended = ended
}

func (m *master) stop() {
	_ = m.process.Process.Kill()
	<-m.ended
	_ = os.Remove(m.socket())
}

// run returns the output of a Net-SNMP command with plain numbers. On a machine under load, a reply may
// take seconds.
func (m *master) run(program, community string, arguments ...string) (string, error) {
	return m.runWithin("30", program, community, arguments...)
}

// runWithin is run with a timeout for each reply, in seconds.
func (m *master) runWithin(seconds, program, community string, arguments ...string) (string, error) {
	command := exec.CommandContext(m.t.Context(), program, append([]string{
		"-v2c", "-c", community, "-On", "-OQ", "-Oe", "-Ot", "-t", seconds, "-r", "0", m.address,
	}, arguments...)...)
	command.Env = append(os.Environ(), "MIBS=", "SNMP_PERSISTENT_DIR="+filepath.Join(m.folder, "kept"), "SNMPCONFPATH="+m.folder)
	out, err := command.CombinedOutput()
	return string(out), err
}

// object is one line of the output.
type object struct{ oid, value string }

// walk walks as LibreNMS does.
func (m *master) walk(oid string) []object {
	m.t.Helper()
	out, err := m.run("snmpbulkwalk", "public", oid)
	if err != nil {
		m.t.Fatalf("walk %s: %v\n%s", oid, err, out)
	}
	var objects []object
	for line := range strings.Lines(out) {
		if oid, value, ok := strings.Cut(strings.TrimRight(line, "\n"), " = "); ok {
			objects = append(objects, object{oid, value})
		} else if n := len(objects); n > 0 { // a text of several lines
			objects[n-1].value += line
		}
	}
	return objects
}

// await repeats a get until good accepts the value.
func (m *master) await(oid string, good func(string) bool) {
	m.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		out, _ := m.runWithin("1", "snmpget", "public", oid) // a master that is starting does not reply
		if _, value, ok := strings.Cut(strings.TrimSpace(out), " = "); ok && good(value) {
			return
		} else if time.Now().After(deadline) {
			log, _ := os.ReadFile(m.log())
			m.t.Fatalf("%s is still %q\n%s", oid, out, log)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
