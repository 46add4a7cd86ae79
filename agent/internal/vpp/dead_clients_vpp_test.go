package vpp

import (
	"context"
	"slices"
	"syscall"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/codec"

	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/vppsim"
)

const dead = "longline/dead"

func TestVPPOverlooksADeadClientAfterEAGAINAndIsMadeToNotice(t *testing.T) {
	t.Run("vppsim", func(t *testing.T) {
		sim, err := vppsim.Start(t.Context(), vppsim.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(sim.Stop)
		deadClientIsDropped(t, sim.APISocket())
	})
	t.Run("real VPP", func(t *testing.T) {
		deadClientIsDropped(t, realvpp.StartOrSkip(t, realvpp.Options{Plugins: []string{"vxlan"}}).APISocket())
	})
}

func deadClientIsDropped(t *testing.T, socket string) {
	t.Helper()
	dialer := Dialer{Socket: socket, Timeout: testTimeout, Name: AgentName("rhino")}
	session, err := dialer.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	overlooked := false
	for n := 0; n < 5 && !overlooked; n++ { // on a busy machine VPP may have sent all replies before its socket was full
		readLate(t, socket)
		victim, err := dialAPISocket(t.Context(), socket, dead)
		if err != nil {
			t.Fatal(err)
		}
		victim.conn.Close()
		for range 3 { // each in another iteration of VPP's main loop, which notices in the first one or not at all
			overlooked = lists(session, dead)
		}
	}
	if !overlooked {
		t.Skip("SKIPPED: this VPP notices without help")
	}
	if names := dialer.dropDeadClientsOnce(session); !slices.Contains(names, dead) {
		t.Errorf("noticed %q", names)
	}
	until(t, "VPP lists it no more", func() bool { return !lists(session, dead) })
}

// TestProvokeSendErrorWaitsForVPPsFailedSend uses a real VPP that gets no CPU time for a while. Before the
// failed send, VPP's list of clients shows no change.
func TestProvokeSendErrorWaitsForVPPsFailedSend(t *testing.T) {
	real := realvpp.StartOrSkip(t, realvpp.Options{Plugins: []string{"vxlan"}})
	signal := func(s syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(real.PID(), s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	defer signal(syscall.SIGCONT)
	done := make(chan error, 1)
	go func() { done <- Dialer{Socket: real.APISocket(), Timeout: testTimeout}.provokeSendError() }()
	select {
	case err := <-done:
		t.Fatalf("it did not wait for VPP: %v", err)
	case <-time.After(500 * time.Millisecond):
	}
	signal(syscall.SIGCONT)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func lists(s *Session, name string) bool {
	for each := range s.clients() {
		if each.name == name {
			return true
		}
	}
	return false
}

// readLate requests more replies than the socket can buffer before it reads any: VPP's send then ends with
// EAGAIN.
func readLate(t *testing.T, socket string) {
	t.Helper()
	const requests = 30_000
	sock, err := dialAPISocket(t.Context(), socket, "longline-late")
	if err != nil {
		t.Fatal(err)
	}
	stop := context.AfterFunc(t.Context(), func() { sock.conn.Close() })
	t.Cleanup(func() { stop(); sock.conn.Close() })
	data, err := codec.EncodeMsg(&memclnt.ControlPing{}, sock.table[key(&memclnt.ControlPing{})])
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint32(requests) {
		if err := sock.request(n+1, data); err != nil {
			t.Fatal(err)
		}
	}
	if err := sock.flush(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	for range requests {
		if _, err := sock.read(); err != nil {
			t.Fatal(err)
		}
	}
}
