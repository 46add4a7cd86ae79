package main

import (
	"net"
	"syscall"
	"testing"
)

func TestAHangingVPPIsReportedUntilItIsRestarted(t *testing.T) {
	a := newAgent(t)
	a.start()
	a.awaitReady()
	hangs := func(wanted bool) func(map[string]any) bool {
		return func(report map[string]any) bool {
			vpp := report["vpp"].(map[string]any)
			return vpp["hangs"] == wanted && vpp["connected"] == !wanted
		}
	}
	await(t, a.portal.observed, "all is well", hangs(false))
	a.sim.LeaveErrno(syscall.EAGAIN)
	for range 16 { // clients that die: with this many, VPP's poll never ends
		conn, err := net.Dial("unix", a.sim.APISocket())
		allow(t, err)
		conn.Close()
	}
	await(t, a.portal.observed, "it hangs", hangs(true))
	allow(t, a.sim.Restart())
	await(t, a.portal.observed, "it was restarted", hangs(false))
}
