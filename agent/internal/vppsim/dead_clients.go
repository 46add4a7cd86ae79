package vppsim

import (
	"errors"
	"io"
	"syscall"
)

// VPP takes a read of 0 bytes for an error and reads errno, which that read has not set (vl_socket_read_ready in
// vlibmemory/socket_api.c). While errno of its main thread is still EAGAIN from another call, it overlooks that a
// client is gone: the client stays listed, and its descriptor stays ready. With as many such descriptors as its
// poll takes events at a time (vlib_file_poll in vlib/file.c), the poll never ends, and no client is answered any more.

// pollBatch is how many events VPP's poll takes at a time.
const pollBatch = 16

// socketBuffer is how much of its answers VPP gets rid of while a client does not read (bytes, net.core.wmem_default).
const socketBuffer = 212_992

// setErrno is the main thread's errno after a failed call. In the same turn of its loop VPP notices the clients that it has
// overlooked. With the lock.
func (v *vpp) setErrno(errno syscall.Errno) {
	v.errno = errno
	if errno != syscall.EAGAIN && !v.hangs() {
		for c := range v.overlooked {
			delete(v.clients, c)
		}
	}
	v.turned.Broadcast()
}

// hangs with the lock.
func (v *vpp) hangs() bool { return len(v.overlooked) >= pollBatch }

// awaitNotice returns once VPP has noticed that the client is gone.
func (v *vpp) awaitNotice(c *client, err error) {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return // a reset connection is an error of its own to VPP's poll
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.overlooked[c] = true
	for !v.stopped && (v.errno == syscall.EAGAIN || v.hangs()) {
		v.turned.Wait()
	}
	delete(v.overlooked, c)
}

// failed plays a send to somebody who does not read any more.
func (v *vpp) failed(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, errno := range []syscall.Errno{syscall.EPIPE, syscall.ECONNRESET} {
		if errors.Is(err, errno) {
			v.setErrno(errno)
		}
	}
}

// LeaveErrno plays a call on VPP's main thread that has just failed.
func (s *Sim) LeaveErrno(errno syscall.Errno) {
	s.look(func(v *vpp) error { v.setErrno(errno); return nil })
}

// Clients are the connections to the API socket that VPP keeps open, those that it overlooks among them.
func (s *Sim) Clients() int {
	clients := 0
	s.look(func(v *vpp) error { clients = len(v.clients); return nil })
	return clients
}

// Overlooked is the number of clients that are gone and that VPP has not noticed.
func (s *Sim) Overlooked() int {
	clients := 0
	s.look(func(v *vpp) error { clients = len(v.overlooked); return nil })
	return clients
}
