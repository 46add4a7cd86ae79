package vppsim

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/codec"

	"longline.dev/agent/internal/arraylength"
)

// listen listens on a socket. As VPP does, it replaces the socket that a crashed run has left. The socket's
// file remains when the listener closes.
func listen(network, path string) (*net.UnixListener, error) {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	listener, err := net.ListenUnix(network, &net.UnixAddr{Net: network, Name: path})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	return listener, nil
}

// serveAPI accepts clients until the listener closes.
func (v *vpp) serveAPI(listener *net.UnixListener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		c := v.attach(conn)
		if c == nil {
			conn.Close()
			return
		}
		v.running.Go(c.write)
		v.running.Go(func() { v.serveClient(c) })
	}
}

// attach registers a connection as a client. It returns nil if the VPP has stopped.
func (v *vpp) attach(conn net.Conn) *client {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.stopped {
		return nil
	}
	v.lastClient++
	c := &client{index: v.lastClient, conn: conn, vpp: v}
	c.wake = sync.NewCond(&c.mu)
	v.clients[c] = true
	return c
}

func (v *vpp) serveClient(c *client) {
	defer v.detach(c)
	reader := bufio.NewReader(c.conn)
	for {
		data, err := readFrame(reader)
		if err != nil {
			v.awaitNotice(c, err)
			return
		}
		op, request, message, ok := c.request(data)
		if !ok {
			continue
		}
		if !v.serve(op, request, message) {
			return
		}
	}
}

// serve handles one request. It returns false if the VPP has stopped.
func (v *vpp) serve(op operation, request *call, message api.Message) bool {
	free, _ := v.occupy()
	defer free()
	v.mu.Lock()
	defer v.mu.Unlock()
	for v.hangs() && !v.stopped {
		v.turned.Wait()
	}
	if v.stopped {
		return false
	}
	op.serve(v, request, message)
	return true
}

func (v *vpp) detach(c *client) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c.close()
	delete(v.clients, c)
	delete(v.watchers, c)
	delete(v.bfd.watchers, c)
}

const (
	frameHeader = 16      // the frame header of VPP (msgbuf_t): u64 queue pointer, u32 data length, u32 gc mark
	maxRequest  = 1 << 20 // bytes; far more than any request has
	maxBacklog  = 64 << 20
)

// client is a connection to the API socket. A separate goroutine sends the queued replies, so that a client
// that does not read cannot block the other clients.
type client struct {
	index uint32
	name  string // the name that the client sent; protected by the lock of the VPP
	conn  net.Conn
	vpp   *vpp

	mu      sync.Mutex
	wake    *sync.Cond
	backlog []byte
	closed  bool
}

// call is a request in progress: its client, and the context that its replies must contain.
type call struct {
	client  *client
	context uint32
}

func (c *call) reply(m api.Message) { c.client.send(m, c.context) }

// send queues a reply. The caller must have locked the VPP.
func (c *client) send(m api.Message, context uint32) {
	id, known := c.vpp.table.id(m)
	if !known {
		return
	}
	data, err := codec.EncodeMsg(m, id)
	if err != nil {
		panic(fmt.Sprintf("vppsim: encoding its own %s: %v", m.GetMessageName(), err))
	}
	at := 2
	if m.GetMessageType() == api.RequestMessage { // feature_is_enabled_reply has the layout of a request, not of a reply
		at = 6
	}
	binary.BigEndian.PutUint32(data[at:at+4], context)
	var header [frameHeader]byte
	binary.BigEndian.PutUint32(header[8:12], uint32(len(data)))

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.backlog = append(append(c.backlog, header[:]...), data...)
	if len(c.backlog) > socketBuffer {
		c.vpp.setErrno(syscall.EAGAIN)
	}
	if len(c.backlog) > maxBacklog {
		c.closed = true
		c.conn.Close()
	}
	c.wake.Signal()
}

// write sends the queued replies. It returns when the client is closed and the queue is empty.
func (c *client) write() {
	for {
		c.mu.Lock()
		for len(c.backlog) == 0 && !c.closed {
			c.wake.Wait()
		}
		pending := c.backlog
		c.backlog = nil
		c.mu.Unlock()
		if len(pending) == 0 {
			c.conn.Close()
			return
		}
		if _, err := c.conn.Write(pending); err != nil {
			c.vpp.failed(err)
			c.close()
		}
	}
}

func (c *client) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.wake.Signal()
}

var errFrame = errors.New("frame length out of range")

// readFrame reads a message and returns it without its frame header.
func readFrame(r io.Reader) ([]byte, error) {
	var header [frameHeader]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(header[8:12])
	if length < 6 || length > maxRequest {
		return nil, errFrame
	}
	data := make([]byte, length)
	_, err := io.ReadFull(r, data)
	return data, err
}

// request decodes a message and finds its operation. It returns false for messages that are unknown or
// cannot be decoded. VPP ignores such messages too.
func (c *client) request(data []byte) (operation, *call, api.Message, bool) {
	op, known := c.vpp.table.serving[binary.BigEndian.Uint16(data)]
	if !known {
		return operation{}, nil, nil, false
	}
	message := newLike(op.request)
	offset := 6
	if message.GetMessageType() == api.RequestMessage {
		offset = 10
	}
	if len(data) < offset {
		return operation{}, nil, nil, false
	}
	if arraylength.Check(data, offset, message) != nil || codec.DecodeMsg(data, message) != nil {
		return operation{}, nil, nil, false
	}
	context := binary.BigEndian.Uint32(data[offset-4 : offset])
	return op, &call{client: c, context: context}, message, true
}

// wantInterfaceEvents registers a client for events. It refuses a second registration of the client, and
// the removal of a registration that does not exist.
func (v *vpp) wantInterfaceEvents(c *call, m *interfaces.WantInterfaceEvents) {
	reply := &interfaces.WantInterfaceEventsReply{}
	_, watching := v.watchers[c.client]
	switch wanted := m.EnableDisable != 0; {
	case wanted == watching:
		reply.Retval = retvalInvalidRegistration
	case wanted:
		v.watchers[c.client] = m.PID
	default:
		delete(v.watchers, c.client)
	}
	c.reply(reply)
}

// announce sends the state of the interface to all clients that have registered for events.
func (v *vpp) announce(i *iface, deleted bool) {
	flags := interface_types.IfStatusFlags(0)
	if !deleted {
		flags = v.flags(i)
	}
	for c, pid := range v.watchers {
		c.send(&interfaces.SwInterfaceEvent{
			PID: pid, SwIfIndex: interface_types.InterfaceIndex(i.index), Flags: flags, Deleted: deleted,
		}, c.index)
	}
}

// The code below simulates a defect of VPP: VPP can overlook the end of a client. VPP considers a read of 0 bytes an
// error and then reads errno, but a read of 0 bytes does not set errno (vl_socket_read_ready in
// vlibmemory/socket_api.c). If errno of the main thread is still EAGAIN because of another call, VPP does
// nothing: the client stays listed, and its descriptor stays ready.
//
// VPP's poll takes a limited number of events at a time (vlib_file_poll in vlib/file.c). If the number of such
// descriptors reaches this limit, the poll never ends, and VPP answers no client.

// pollBatch is the number of events that VPP's poll takes at a time.
const pollBatch = 16

// socketBuffer is the number of bytes of replies that VPP can send to a client that does not read
// (net.core.wmem_default).
const socketBuffer = 212_992

// setErrno sets errno of the main thread, as a failed call does. If the value is not EAGAIN, VPP then notices
// the end of the overlooked clients. The caller must have locked the VPP.
func (v *vpp) setErrno(errno syscall.Errno) {
	v.errno = errno
	if errno != syscall.EAGAIN && !v.hangs() {
		for c := range v.overlooked {
			delete(v.clients, c)
		}
	}
	v.turned.Broadcast()
}

// hangs reports whether the VPP hangs. The caller must have locked the VPP.
func (v *vpp) hangs() bool { return len(v.overlooked) >= pollBatch }

// awaitNotice returns when VPP notices the end of the client.
func (v *vpp) awaitNotice(c *client, err error) {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return // VPP's poll reports a reset connection as an error, which VPP does not overlook
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.overlooked[c] = true
	for !v.stopped && (v.errno == syscall.EAGAIN || v.hangs()) {
		v.turned.Wait()
	}
	delete(v.overlooked, c)
}

// failed simulates a failed send to a client that does not read any more.
func (v *vpp) failed(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, errno := range []syscall.Errno{syscall.EPIPE, syscall.ECONNRESET} {
		if errors.Is(err, errno) {
			v.setErrno(errno)
		}
	}
}

// LeaveErrno simulates that a call on VPP's main thread has just failed with this errno.
func (s *Sim) LeaveErrno(errno syscall.Errno) {
	s.inspect(func(v *vpp) error { v.setErrno(errno); return nil })
}

// Clients returns the number of connections to the API socket that VPP considers open. Overlooked clients
// are included.
func (s *Sim) Clients() int {
	clients := 0
	s.inspect(func(v *vpp) error { clients = len(v.clients); return nil })
	return clients
}

// Overlooked returns the number of clients that have ended and whose end VPP has not noticed.
func (s *Sim) Overlooked() int {
	clients := 0
	s.inspect(func(v *vpp) error { clients = len(v.overlooked); return nil })
	return clients
}
