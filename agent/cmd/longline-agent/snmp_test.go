package main

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestWithSNMPTheAgentRegistersAsSubagentAndRequestsNames: internal/snmp tests with a real snmpd. The
// master agent does not respond here, which must not delay anything else.
func TestWithSNMPTheAgentRegistersAsSubagentAndRequestsNames(t *testing.T) {
	a := newAgent(t)
	socket := filepath.Join(t.TempDir(), "master")
	master, err := net.Listen("unix", socket)
	allow(t, err)
	t.Cleanup(func() { master.Close() })
	config, err := os.ReadFile(a.config)
	allow(t, err)
	allow(t, os.WriteFile(a.config, append(config, []byte("snmp: {agentx: "+socket+"}\n")...), 0o600))
	stop := a.start()
	allow(t, master.(*net.UnixListener).SetDeadline(time.Now().Add(testTimeout)))
	conn, err := master.Accept()
	allow(t, err)
	defer conn.Close()
	header := make([]byte, 20)
	if _, err := io.ReadFull(conn, header); err != nil || header[0] != 1 || header[1] != 1 {
		t.Errorf("it begins with % x, want version 1 and Open: %v", header, err)
	}
	a.awaitReady()
	await(t, a.portal.observed, "a report that requests labels", func(report map[string]any) bool { return report["labels"] == true })
	stop()
}
