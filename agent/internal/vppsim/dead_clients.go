package vppsim

import (
	"errors"
	"io"
	"syscall"
)

// VPP takes a read of 0 bytes for an error and reads errno, which that read has not set
// (vl_socket_read_ready in vlibmemory/socket_api.c). While errno of its main thread is still EAGAIN from
// another call, VPP overlooks the end of a client: the client stays listed, and its descriptor stays ready.
// If the number of such descriptors reaches the number of events that its poll takes at a time
// (vlib_file_poll in vlib/file.c), the poll never ends. VPP then answers no client.

// pollBatch is the number of events that VPP's poll takes at a time.
const pollBatch = 16

// socketBuffer is the amount of replies that VPP can send while a client does not read (bytes,
// net.core.wmem_default).
const socketBuffer = 212_992

// setErrno sets the main thread's errno after a failed call. In the same iteration of its loop VPP notices
// the overlooked clients. The caller has locked the VPP.
func (v *vpp) setErrno(errno syscall.Errno) {
	v.errno = errno
	if errno != syscall.EAGAIN && !v.hangs() {
		for c := range v.overlooked {
			delete(v.clients, c)
		}
	}
	v.turned.Broadcast()
}

// hangs reports whether the VPP hangs. The caller has locked the VPP.
func (v *vpp) hangs() bool { return len(v.overlooked) >= pollBatch }

// awaitNotice returns when VPP has noticed the end of the client.
func (v *vpp) awaitNotice(c *client, err error) {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return // VPP's poll handles a reset connection as a separate error
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.overlooked[c] = true
	for !v.stopped && (v.errno == syscall.EAGAIN || v.hangs()) {
		v.turned.Wait()
	}
	delete(v.overlooked, c)
}

// failed simulates a failed send to a client that no longer reads.
func (v *vpp) failed(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, errno := range []syscall.Errno{syscall.EPIPE, syscall.ECONNRESET} {
		if errors.Is(err, errno) {
			v.setErrno(errno)
		}
	}
}

// LeaveErrno simulates a call on VPP's main thread that has just failed.
func (s *Sim) LeaveErrno(errno syscall.Errno) {
	s.inspect(func(v *vpp) error { v.setErrno(errno); return nil })
}

// Clients returns the number of connections to the API socket that VPP keeps open, including overlooked
// ones.
func (s *Sim) Clients() int {
	clients := 0
	s.inspect(func(v *vpp) error { clients = len(v.clients); return nil })
	return clients
}

// Overlooked returns the number of ended clients that VPP has not noticed.
func (s *Sim) Overlooked() int {
	clients := 0
	s.inspect(func(v *vpp) error { clients = len(v.overlooked); return nil })
	return clients
}
