package vppsim

import (
	"errors"
	"io"
	"syscall"
)

// This file simulates a defect of VPP: VPP can overlook the end of a client. VPP considers a read of 0 bytes an
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
