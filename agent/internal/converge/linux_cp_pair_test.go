package converge

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/vppsim"
)

// pairer creates Linux CP pairs as another client. VPP's own test plugin joins a port with a loopback.
// Without that plugin the pair needs a TAP, and a TAP needs /dev/vhost-net.
func pairer(real *realvpp.VPP) func(port string) error {
	return func(port string) error {
		host, err := real.CLI("create loopback interface")
		if err != nil {
			return err
		}
		host = strings.TrimSpace(host)
		if _, err = real.CLI(fmt.Sprintf("test lcp add phy %s host %s", port, host)); err == nil {
			return nil
		}
		if _, undone := real.CLI("delete loopback interface intfc " + host); undone != nil {
			return undone
		}
		if _, absent := os.Stat("/dev/vhost-net"); absent != nil {
			return fmt.Errorf("no Linux CP pair can be made: this VPP lacks linux_cp_unittest_plugin.so, and this machine what a TAP takes: %w",
				errors.Join(err, absent))
		}
		_, err = real.CLI(fmt.Sprintf("lcp create %s host-if lltest%d", port, real.PID()))
		return err
	}
}

func TestPairedPortIsNotUsedAsAWholePort(t *testing.T) {
	t.Run("vppsim", func(t *testing.T) {
		sim, err := vppsim.Start(t.Context(), vppsim.Config{LCPPairs: []vppsim.LCPPair{{Interface: "loop102", Host: "paired"}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(sim.Stop)
		pairStays(t, newRouter(t, sim.APISocket(), sim.StatsSocket()))
	})
	t.Run("real VPP", func(t *testing.T) {
		r, real := newRealRouter(t)
		if err := r.pair(r.ports[2]); err != nil {
			t.Skipf("SKIPPED, NO LINUX CP PAIR ON THIS REAL VPP: %v", err)
		}
		pairStays(t, r)
		pairs, err := real.CLI("show lcp")
		if err != nil || !strings.Contains(pairs, r.ports[2]) {
			t.Errorf("VPP itself shows %s, %v", pairs, err)
		}
	})
}

// pairStays checks a router whose third port is paired.
func pairStays(t *testing.T, r *router) {
	t.Helper()
	paired := r.ports[2]
	port, before := uint32(r.index(paired)), r.snapshot()
	if before.LCP[port] == "" {
		t.Fatalf("the pair is not seen: %v", before.LCP)
	}
	whole, vlan := vxlanEnd(1, paired), vxlanEnd(2, paired)
	whole.Access = accessOf(intent.Untagged, paired)
	session := record(r.session)
	r.Attach(session)
	if e := r.put([]intent.End{whole}).of(t, whole.Key); e.Status != "conflict" || e.Reason.Code != "port_in_use" {
		t.Errorf("got %+v %+v", e, e.Reason)
	}
	for _, e := range r.put([]intent.End{vlan}, tombstone(whole)).Ends {
		if e.Reason != nil {
			t.Errorf("%s is %s: %+v", e.Key, e.Status, e.Reason)
		}
	}
	if messages := session.touched[port]; len(messages) != 1 || messages[0] != "create_subif" {
		t.Errorf("the port was touched by %v", messages)
	}
	if after := r.snapshot(); !maps.Equal(after.LCP, before.LCP) {
		t.Errorf("pairs became %v, were %v", after.LCP, before.LCP)
	}
}
