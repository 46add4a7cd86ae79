package vpp

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"longline.dev/agent/internal/vppsim"
)

// keeper keeps a session in the background; sessions counts the sessions that were used.
type keeper struct {
	mu       sync.Mutex
	refused  error
	noticed  []string
	sessions atomic.Int32
}

func keep(t *testing.T, d Dialer) *keeper {
	t.Helper()
	k := &keeper{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.KeepConnected(ctx, Keeper{
			Log:     slog.New(slog.DiscardHandler),
			Refused: func(err error) { k.mu.Lock(); defer k.mu.Unlock(); k.refused = err },
			Noticed: func(names []string) { k.mu.Lock(); defer k.mu.Unlock(); k.noticed = append(k.noticed, names...) },
			Use:     func(ctx context.Context, _ *Session) { k.sessions.Add(1); <-ctx.Done() },
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
	return k
}

func (k *keeper) reports() (refused error, noticed []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.refused, slices.Clone(k.noticed)
}

func until(t *testing.T, condition string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testTimeout); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", condition)
		}
	}
}

func simulated(t *testing.T) (*vppsim.Sim, Dialer) {
	t.Helper()
	sim, err := vppsim.Start(t.Context(), vppsim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Stop)
	return sim, Dialer{Socket: sim.APISocket(), Timeout: testTimeout, Name: AgentName("rhino")}
}

// died connects a client and kills it. It returns once VPP has overlooked the end of the client.
func died(t *testing.T, sim *vppsim.Sim, name string) {
	t.Helper()
	sim.LeaveErrno(syscall.EAGAIN)
	before := sim.Overlooked()
	sock, err := dialAPISocket(t.Context(), sim.APISocket(), name)
	if err != nil {
		t.Fatal(err)
	}
	sock.conn.Close()
	until(t, "VPP overlooks it", func() bool { return sim.Overlooked() > before })
}

func TestASessionDeregistersFromVPP(t *testing.T) {
	sim, dialer := simulated(t)
	session, err := dialer.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sim.LeaveErrno(syscall.EAGAIN)
	session.Close()
	until(t, "VPP removes the client", func() bool { return sim.Clients() == 0 })
}

func TestARefusedAgentHasNotConnectedToVPP(t *testing.T) {
	sim, dialer := simulated(t)
	first, err := dialer.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sim.LeaveErrno(syscall.EAGAIN)
	for range 20 {
		if _, err := dialer.Dial(t.Context()); err == nil {
			t.Fatal("there are two")
		}
	}
	if clients := sim.Clients(); clients != 1 {
		t.Errorf("VPP has %d clients", clients)
	}
	first.Close()
	second, err := dialer.Dial(t.Context())
	if err != nil {
		t.Fatalf("after the first deregistered: %v", err)
	}
	second.Close()
}

func TestADeadAgentInVPPsListBlocksNoOther(t *testing.T) {
	sim, dialer := simulated(t)
	died(t, sim, dialer.Name)
	died(t, sim, "longline/zzzzz/rhino")
	k := keep(t, dialer)
	until(t, "a session", func() bool { return k.sessions.Load() == 1 })
	until(t, "VPP notices", func() bool { return sim.Clients() == 1 })
	until(t, "it is reported", func() bool { _, noticed := k.reports(); return len(noticed) == 2 })
	if _, noticed := k.reports(); !slices.Contains(noticed, dialer.Name) || !slices.Contains(noticed, "longline/zzzzz/rhino") {
		t.Errorf("noticed %q", noticed)
	}
}

func TestLiveClientsAreNotDisconnected(t *testing.T) {
	sim, dialer := simulated(t)
	other, err := dialAPISocket(t.Context(), sim.APISocket(), "somebody else")
	if err != nil {
		t.Fatal(err)
	}
	defer other.conn.Close()
	session, err := dialer.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	sim.LeaveErrno(syscall.EAGAIN)
	if names := dialer.dropDeadClientsOnce(session); len(names) != 0 {
		t.Errorf("noticed %q", names)
	}
	if clients := sim.Clients(); clients != 2 {
		t.Errorf("VPP has %d clients", clients)
	}
}

func TestAHangingVPPIsReportedAndPolledOnOneConnection(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "api.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var connections atomic.Int32
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			defer conn.Close()
		}
	}()
	k := keep(t, Dialer{Socket: socket, Timeout: 20 * time.Millisecond, Name: AgentName("rhino")})
	until(t, "it is reported", func() bool { refused, _ := k.reports(); return refused == ErrHangs })
	time.Sleep(200 * time.Millisecond)
	if got := connections.Load(); got != 1 {
		t.Errorf("%d connections", got)
	}
}

func TestAVPPThatRespondsAgainIsNoLongerReportedAsHanging(t *testing.T) {
	sim, dialer := simulated(t)
	dialer.Timeout = 500 * time.Millisecond
	for range 16 { // with these VPP answers no client
		died(t, sim, "")
	}
	k := keep(t, dialer)
	until(t, "it is reported", func() bool { refused, _ := k.reports(); return refused == ErrHangs })
	if err := sim.Restart(); err != nil {
		t.Fatal(err)
	}
	until(t, "a session", func() bool { return k.sessions.Load() > 0 })
	until(t, "it is no longer reported", func() bool { refused, _ := k.reports(); return refused == nil })
}

func TestTheListOfClientsIsParsed(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []client
	}{
		"nobody":   {"", nil},
		"ours":     {"Socket clients\n                Name  Fildesc\n      longline/rhino       31\n", []client{{"longline/rhino", 31}}},
		"nameless": {"Socket clients\n                Name  Fildesc\n                           32\n", []client{{"", 32}}},
		"spaces":   {"Socket clients\n                Name  Fildesc\n       a govpp tool       33\n", []client{{"a govpp tool", 33}}},
		"shared memory too": {"Shared memory clients\n  Name  PID  Queue Length  Queue VA Health\n  vat  12 0 0x0000000130000000 OK\n" +
			"Socket clients\n                Name  Fildesc\n                 vat       34\n", []client{{"vat", 34}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := slices.Collect(maps.Keys(clientsOf(c.text)))
			if !slices.Equal(got, c.want) {
				t.Errorf("read %+v", got)
			}
		})
	}
}
