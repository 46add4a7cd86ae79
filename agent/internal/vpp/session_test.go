package vpp

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/lcp"
	"go.fd.io/govpp/binapi/memclnt"

	"longline.dev/agent/internal/vppsim"
)

const testTimeout = 20 * time.Second

func dial(t *testing.T) (*Session, *vppsim.Sim) {
	t.Helper()
	sim, err := vppsim.Start(t.Context(), vppsim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Stop)
	session, err := Dialer{Socket: sim.APISocket(), Timeout: testTimeout}.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return session, sim
}

func mustEnd(t *testing.T, s *Session) {
	t.Helper()
	select {
	case <-s.Done():
	case <-time.After(testTimeout):
		t.Fatal("the session did not end")
	}
}

func TestASessionKnowsVPPsVersionAndProcess(t *testing.T) {
	session, _ := dial(t)
	if session.Info().PID == 0 || !session.Info().Simulated() {
		t.Errorf("got %+v", session.Info())
	}
}

func TestVPPIsAbsentIfNoProcessListensOnTheSocket(t *testing.T) {
	dialer := Dialer{Socket: filepath.Join(t.TempDir(), "api.sock"), Timeout: 100 * time.Millisecond}
	absent := func() bool {
		_, err := dialer.Dial(t.Context())
		if err == nil {
			t.Fatal("connected without a listener")
		}
		return IsAbsent(err)
	}
	if !absent() {
		t.Error("there is no socket")
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: dialer.Socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false) // as a killed process leaves it
	if absent() {
		t.Error("a VPP that hangs may still forward")
	}
	listener.Close()
	if !absent() {
		t.Error("the listener has ended")
	}
	if IsAbsent(nil) {
		t.Error("no error means no absence")
	}
}

func TestRepliesAreMatchedToRequestsInFlight(t *testing.T) {
	session, _ := dial(t)
	var requests []api.Message
	for n := range uint32(10 * window) {
		requests = append(requests, &interfaces.CreateLoopbackInstance{IsSpecified: true, UserInstance: n % 100})
	}
	replies, err := session.Calls(t.Context(), requests)
	if err != nil {
		t.Fatal(err)
	}
	for i, reply := range replies {
		if ok := Retval(reply) == 0; ok != (i < 100) { // the second of each instance is refused
			t.Fatalf("reply %d has return code %d", i, Retval(reply))
		}
	}
}

func TestADumpWithoutAFinalReplyIsComplete(t *testing.T) {
	session, _ := dial(t)
	for n := range uint32(300) {
		if _, err := session.Call(t.Context(), &interfaces.CreateLoopbackInstance{IsSpecified: true, UserInstance: n}); err != nil {
			t.Fatal(err)
		}
	}
	found := 0
	err := session.Dump(t.Context(), []api.Message{&interfaces.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0)}}, func(api.Message) { found++ })
	if err != nil || found != 301 {
		t.Errorf("found %d, %v, want local0 and 300 loopbacks", found, err)
	}
}

func TestADumpThatAnotherProcessAnswersEndsTheSession(t *testing.T) {
	session, _ := dial(t)
	session.info.PID++ // the session was opened by another process
	err := session.Dump(t.Context(), []api.Message{&interfaces.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0)}}, func(api.Message) {})
	if !errors.Is(err, ErrProtocol) {
		t.Errorf("got %v", err)
	}
	mustEnd(t, session)
}

func TestAMissingMessageIsNamedAndTheSessionContinues(t *testing.T) {
	session, _ := dial(t)
	var unsupported *UnsupportedError
	if _, err := session.Call(t.Context(), &lcp.LcpItfPairGet{}); !errors.As(err, &unsupported) || unsupported.Message != "lcp_itf_pair_get" {
		t.Errorf("got %v", err)
	}
	if session.Has(&lcp.LcpItfPairGet{}) || !session.Has(&memclnt.ControlPing{}) {
		t.Error("the message table is misread")
	}
	if _, err := session.Call(t.Context(), &memclnt.ControlPing{}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestTheDeathOfVPPEndsTheSession(t *testing.T) {
	session, sim := dial(t)
	sim.Stop()
	mustEnd(t, session)
	if _, err := session.Call(t.Context(), &memclnt.ControlPing{}); err == nil {
		t.Error("a dead VPP answered")
	}
}

func TestACancelledCallLeavesTheSessionUsable(t *testing.T) {
	session, _ := dial(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = session.Call(ctx, &memclnt.ControlPing{})
	if _, err := session.Call(t.Context(), &memclnt.ControlPing{}); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestASocketWithoutVPPBehindItIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "api.sock")
	if _, err := (Dialer{Socket: path, Timeout: time.Second}).Dial(t.Context()); err == nil {
		t.Error("a missing socket was dialled")
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if _, err := (Dialer{Socket: path, Timeout: time.Second}).Dial(t.Context()); err == nil {
		t.Error("a silent socket was dialled")
	}
}

func TestNoReplyWithinTheTimeoutEndsTheSession(t *testing.T) {
	session, _ := dial(t)
	session.timeout = 10 * time.Millisecond
	if err := session.await(t.Context(), newPendingCall(), 1); !errors.Is(err, ErrTimeout) {
		t.Errorf("got %v", err)
	}
	mustEnd(t, session)
}

func TestRepliesMayTakeLongerThanTheTimeoutInTotal(t *testing.T) {
	session, _ := dial(t)
	session.timeout = time.Second
	const answers = 15
	waiting := newPendingCall()
	go func() {
		for range answers {
			time.Sleep(session.timeout / 10)
			session.mu.Lock()
			waiting.noteAnswer(false)
			session.mu.Unlock()
		}
	}()
	if err := session.await(t.Context(), waiting, answers); err != nil {
		t.Errorf("while they came: %v", err)
	}
	if err := session.await(t.Context(), waiting, answers+1); !errors.Is(err, ErrTimeout) {
		t.Errorf("after the last one: %v", err)
	}
	mustEnd(t, session)
}

func TestAMessageThatCannotBeDecodedEndsTheSession(t *testing.T) {
	for name, c := range map[string]struct{ data []byte }{
		"cut off":       {[]byte{0, 0, 0, 0, 0, 9}},
		"to no request": {[]byte{0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			session, _ := dial(t)
			session.mu.Lock()
			session.calls[9] = func(api.Message) { t.Error("delivered") }
			session.mu.Unlock()
			binary.BigEndian.PutUint16(c.data, session.sock.table[key(&memclnt.ControlPingReply{})])
			session.receive(c.data)
			mustEnd(t, session)
			if !errors.Is(session.Err(), ErrProtocol) {
				t.Errorf("got %v", session.Err())
			}
		})
	}
}
