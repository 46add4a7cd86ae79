package vpp

import (
	"context"
	"encoding/binary"
	"io"
	"slices"
	"syscall"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/vlib"
	"go.fd.io/govpp/codec"

	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/vppsim"
)

const dead = "longline/dead"

func TestVPPOverlooksADeadClientAfterEAGAINAndIsMadeToNotice(t *testing.T) {
	for name, vpp := range eachVPP {
		t.Run(name, func(t *testing.T) {
			socket := vpp.start(t)
			dialer, session := dialAgent(t, socket)
			if !overlooks(t, session, socket) {
				if vpp.simulated {
					t.Fatal("the stand-in notices without help")
				}
				t.Skip("SKIPPED: this VPP notices without help")
			}
			if names := dialer.dropDeadClientsOnce(session); !slices.Contains(names, dead) {
				t.Errorf("noticed %q", names)
			}
			if lists(session, dead) {
				t.Error("VPP still lists it")
			}
		})
	}
}

// TestDroppingDeadClientsListsTheClientsAtMostTwice: VPP stops its workers for each list.
func TestDroppingDeadClientsListsTheClientsAtMostTwice(t *testing.T) {
	for name, vpp := range eachVPP {
		t.Run(name, func(t *testing.T) {
			socket := vpp.start(t)
			dialer, session := dialAgent(t, socket)
			count := countRequests(session)
			if dialer.dropDeadClientsOnce(session); count(&vlib.CliInband{}) != 1 {
				t.Errorf("without another client it sent %d commands", count(&vlib.CliInband{}))
			}
			other, err := dialAPISocket(t.Context(), socket, "somebody else")
			if err != nil {
				t.Fatal(err)
			}
			defer other.conn.Close()
			if dialer.dropDeadClientsOnce(session); count(&vlib.CliInband{}) != 1+2 || count(&memclnt.ControlPing{}) < iterationsUntilRemoved {
				t.Errorf("with another client it sent %d commands and %d pings", count(&vlib.CliInband{})-1, count(&memclnt.ControlPing{}))
			}
		})
	}
}

// eachVPP starts the stand-in or a real VPP, and returns the path of its API socket.
var eachVPP = map[string]struct {
	start     func(*testing.T) (socket string)
	simulated bool
}{
	"vppsim": {func(t *testing.T) string {
		sim, err := vppsim.Start(t.Context(), vppsim.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(sim.Stop)
		return sim.APISocket()
	}, true},
	"real VPP": {func(t *testing.T) string {
		return realvpp.StartOrSkip(t, realvpp.Options{Plugins: []string{"vxlan"}}).APISocket()
	}, false},
}

func dialAgent(t *testing.T, socket string) (Dialer, *Session) {
	t.Helper()
	dialer := Dialer{Socket: socket, Timeout: realvpp.ReplyTimeout, Name: AgentName("rhino")}
	session, err := dialer.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return dialer, session
}

// countRequests returns a function that returns how many requests of a type the session has sent since.
func countRequests(s *Session) func(api.Message) int {
	sent := &sentRequests{Writer: s.sock.conn, byID: make(map[uint16]int)}
	s.sock.mu.Lock()
	defer s.sock.mu.Unlock()
	s.sock.writer.Reset(sent)
	return func(msg api.Message) int {
		s.sock.mu.Lock()
		defer s.sock.mu.Unlock()
		return sent.byID[s.sock.table[key(msg)]]
	}
}

// sentRequests counts requests by the number of their message. Each Write has complete frames.
type sentRequests struct {
	io.Writer
	byID map[uint16]int
}

func (s *sentRequests) Write(data []byte) (int, error) {
	for rest := data; len(rest) > 0; rest = rest[frameHeader+binary.BigEndian.Uint32(rest[8:12]):] {
		s.byID[binary.BigEndian.Uint16(rest[frameHeader:])]++
	}
	return s.Writer.Write(data)
}

// overlooks reports whether VPP overlooks the end of a client with the name dead.
func overlooks(t *testing.T, session *Session, socket string) bool {
	t.Helper()
	for range 5 { // on a busy machine VPP may have sent all replies before its socket was full
		readLate(t, socket)
		victim, err := dialAPISocket(t.Context(), socket, dead)
		if err != nil {
			t.Fatal(err)
		}
		victim.conn.Close()
		overlooked := false
		for range iterationsUntilRemoved {
			overlooked = lists(session, dead)
		}
		if overlooked {
			return true
		}
	}
	return false
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
	go func() { done <- Dialer{Socket: real.APISocket(), Timeout: realvpp.ReplyTimeout}.provokeSendError() }()
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
