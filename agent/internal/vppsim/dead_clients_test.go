package vppsim_test

import (
	"context"
	"net"
	"syscall"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/vpe"

	"longline.dev/agent/internal/vppsim"
)

// gone connects clients and kills them: they do not deregister.
func gone(t *testing.T, sim *vppsim.Sim, number int) {
	t.Helper()
	before := sim.Clients()
	for range number {
		conn, err := net.Dial("unix", sim.APISocket())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	awaitClients(t, sim, before+number)
}

func awaitClients(t *testing.T, sim *vppsim.Sim, want int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); sim.Clients() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("VPP keeps %d clients, want %d", sim.Clients(), want)
		}
	}
}

func TestADeadClientIsOverlookedWhileErrnoIsEAGAIN(t *testing.T) {
	sim := start(t, router)
	gone(t, sim, 3)
	awaitClients(t, sim, 0)
	sim.LeaveErrno(syscall.EAGAIN)
	gone(t, sim, 3)
	time.Sleep(50 * time.Millisecond) // longer than VPP needs to notice
	awaitClients(t, sim, 3)
	sim.LeaveErrno(syscall.EPIPE)
	awaitClients(t, sim, 0)
}

func TestAFailedSendMakesVPPNoticeOverlookedClients(t *testing.T) {
	sim := start(t, router)
	sim.LeaveErrno(syscall.EAGAIN)
	gone(t, sim, 3)
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: sim.APISocket(), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.CloseRead(); err != nil {
		t.Fatal(err)
	}
	create := make([]byte, 16+70)
	create[11], create[17] = 70, 15
	if _, err := conn.Write(create); err != nil {
		t.Fatal(err)
	}
	awaitClients(t, sim, 0)
}

func TestVPPHangsWhenOverlookedClientsFillItsPoll(t *testing.T) {
	sim := start(t, router)
	conn := connect(t, sim)
	sim.LeaveErrno(syscall.EAGAIN)
	gone(t, sim, 15)
	invoke(t, conn, &vpe.ShowVersion{}, &vpe.ShowVersionReply{})
	gone(t, sim, 1)
	answers := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		return conn.Invoke(ctx, &vpe.ShowVersion{}, &vpe.ShowVersionReply{}) == nil
	}
	for deadline := time.Now().Add(10 * time.Second); answers(); {
		if time.Now().After(deadline) {
			t.Fatal("it goes on answering")
		}
	}
	if sim.LeaveErrno(syscall.EPIPE); answers() { // too late
		t.Error("it answers again")
	}
}
