package converge

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
	"longline.dev/agent/internal/vppsim"
)

// Effects of one byte of a script on one message from VPP. Further messages pass unchanged.
const (
	passOn = iota
	cutOff
	swapWithNext
	sendTwice
	unknownNumber
	otherContext
	shortLength
	hugeLength
	hangUp
	kinds
)

// meddler is a proxy between the agent and VPP. It passes all messages until it is armed. Then it applies
// the script to each message from VPP.
type meddler struct {
	listener net.Listener
	to       string
	script   atomic.Pointer[[]byte]
}

func meddle(t testing.TB, to string) *meddler {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "api.sock"))
	if err != nil {
		t.Fatal(err)
	}
	m := &meddler{listener: listener, to: to}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			agent, err := listener.Accept()
			if err != nil {
				return
			}
			go m.serve(agent)
		}
	}()
	return m
}

func (m *meddler) socket() string { return m.listener.Addr().String() }

func (m *meddler) arm(script []byte) { m.script.Store(&script) }

func (m *meddler) serve(agent net.Conn) {
	defer agent.Close()
	vpp, err := net.Dial("unix", m.to)
	if err != nil {
		return
	}
	defer vpp.Close()
	go func() {
		_, _ = io.Copy(vpp, agent)
		vpp.Close()
	}()
	reader := bufio.NewReader(vpp)
	for {
		frame, err := readFrame(reader)
		if err != nil {
			return
		}
		out := m.change(frame, reader)
		for _, frame := range out {
			if _, err := agent.Write(frame); err != nil {
				return
			}
		}
		if out == nil {
			return
		}
	}
}

// change applies the next step of the script. nil closes the connection.
func (m *meddler) change(frame []byte, reader io.Reader) [][]byte {
	script := m.script.Load()
	if script == nil || len(*script) == 0 {
		return [][]byte{frame}
	}
	step, rest := (*script)[0]%kinds, (*script)[1:]
	m.script.Store(&rest)
	const header = 16
	switch step {
	case cutOff:
		if len(frame) > header+7 {
			frame = frame[:header+7]
			binary.BigEndian.PutUint32(frame[8:12], 7)
		}
	case swapWithNext:
		next, err := readFrame(reader)
		if err != nil {
			return nil
		}
		return [][]byte{next, frame}
	case sendTwice:
		return [][]byte{frame, frame}
	case unknownNumber:
		binary.BigEndian.PutUint16(frame[header:], 0xfff0)
	case otherContext:
		frame[header+5] ^= 0x40
	case shortLength:
		binary.BigEndian.PutUint32(frame[8:12], 3)
	case hugeLength:
		binary.BigEndian.PutUint32(frame[8:12], 0xfffffff0)
	case hangUp:
		return nil
	}
	return [][]byte{frame}
}

func readFrame(r io.Reader) ([]byte, error) {
	header := make([]byte, 16)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, err
	}
	frame := make([]byte, 16+binary.BigEndian.Uint32(header[8:12]))
	copy(frame, header)
	_, err := io.ReadFull(r, frame[16:])
	return frame, err
}

// dialThrough opens a session with the router's VPP through the proxy m.
func (r *router) dialThrough(m *meddler) *vpp.Session {
	r.t.Helper()
	dialer := vpp.Dialer{Socket: m.socket(), Timeout: 300 * time.Millisecond, BootMS: func(ctx context.Context) (int64, error) {
		return statseg.BootTime(ctx, r.stats)
	}}
	session, err := dialer.Dial(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return session
}

// skip lets n messages pass before the script.
func skip(n int, script ...byte) []byte { return append(make([]byte, n), script...) }

// FuzzVPPMessages checks that the agent does not panic and does not report unfinished work as done, for any
// messages from the socket. With a correct socket, the agent then finishes, and no foreign object has
// changed.
func FuzzVPPMessages(f *testing.F) {
	for step := byte(1); step < kinds; step++ {
		for _, n := range []int{0, 3, 11, 17, 18, 19, 20, 22, 24, 26, 28, 30} {
			f.Add(skip(n, step))
		}
	}
	f.Add(skip(2, unknownNumber, sendTwice)) // an interface is missing in a dump
	f.Add([]byte{swapWithNext, swapWithNext, swapWithNext, sendTwice, sendTwice})
	f.Fuzz(func(t *testing.T, script []byte) {
		sim, err := vppsim.Start(t.Context(), vppsim.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer sim.Stop()
		r := newRouter(t, sim.APISocket(), sim.StatsSocket())
		r.forwards = sim.Forwarding
		r.furnishForeign()
		honest := r.session
		foreign := theirs(r.snapshot(), r.ports[0], r.ports[1])
		before := r.stateOf(r.snapshot(), foreign)
		m := meddle(t, sim.APISocket())
		session := r.dialThrough(m)
		defer session.Close()
		m.arm(script)
		r.Attach(session)
		ends := []intent.End{vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[0])}
		outcome := r.put(ends)
		r.session = honest
		r.Attach(honest)
		if outcome.Applied && session.Err() == nil {
			if off := r.fieldsOff(); len(off) != 0 {
				t.Errorf("said to be done, and these are off: %v", off)
			}
		}
		// VPP may still process messages of the other connection after this converge has read and before it
		// creates. Then it refuses to create a second interface, and the next converge finishes the work.
		outcome = r.Converge(t.Context())
		if slices.ContainsFunc(outcome.Ends, func(e End) bool { return e.Status == "pending" }) {
			outcome = r.Converge(t.Context())
		}
		outcome.mustAllBe(t, "verified")
		if after := r.stateOf(r.snapshot(), foreign); !maps.Equal(after, before) {
			t.Errorf("got  %v\nwant %v", after, before)
		}
	})
}
