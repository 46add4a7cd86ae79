package vppcontract

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"longline.dev/agent/internal/realvpp"
)

// TestAShutHostInterfaceTakesTheCarrierOfItsPeer: the peer has its carrier again when the interface is set
// up. VPP does not notice the reverse: its link stays up while the peer is down. The stand-in has no
// cables.
func TestAShutHostInterfaceTakesTheCarrierOfItsPeer(t *testing.T) {
	vpp := realvpp.StartOrSkip(t, realvpp.Options{Plugins: []string{"af_packet"}})
	near, far := fmt.Sprintf("ca%d", os.Getpid()), fmt.Sprintf("cb%d", os.Getpid())
	ip := func(words ...string) {
		t.Helper()
		if out, err := exec.Command("ip", words...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v: %s", words, err, out)
		}
	}
	ip("link", "add", near, "type", "veth", "peer", "name", far)
	t.Cleanup(func() { exec.Command("ip", "link", "del", near).Run() })
	ip("link", "set", near, "up")
	ip("link", "set", far, "up")
	d := &device{T: t, socket: vpp.APISocket(), stats: vpp.StatsSocket()}
	d.connect()
	d.cli("create host-interface name " + near)
	port := d.interfaces()["host-"+near].SwIfIndex
	carrier := func(want string) {
		t.Helper()
		for deadline := time.Now().Add(answerIn); ; time.Sleep(10 * time.Millisecond) {
			if now, err := os.ReadFile("/sys/class/net/" + far + "/carrier"); err == nil && strings.TrimSpace(string(now)) == want {
				return
			} else if time.Now().After(deadline) {
				t.Fatalf("the carrier of the peer is %q (%v), want %s", now, err, want)
			}
		}
	}
	d.setFlags(port, up)
	carrier("1")
	d.setFlags(port, 0)
	carrier("0")
	d.setFlags(port, up)
	carrier("1")
	ip("link", "set", far, "down")
	if flags := d.at(port).Flags; flags != up|linkUp {
		t.Errorf("the peer is down, and VPP says %v", flags)
	}
}
