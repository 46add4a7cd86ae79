package vpp

import (
	"cmp"
	"context"
	"net"
	"strconv"
	"strings"
	"time"

	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/vlib"
	"golang.org/x/sys/unix"
)

// While errno of VPP's main thread is EAGAIN, VPP overlooks that a client has disconnected. Heavy traffic on
// the API leaves errno in this state. The reason is that vl_socket_read_ready in vlibmemory/socket_api.c
// takes a read of 0 bytes for an error and reads errno (23.10 to 26.06). An overlooked client stays in VPP's
// list and keeps the main thread busy. Sixteen overlooked clients stop the main thread permanently. When a
// call of that thread fails with another errno, VPP notices all overlooked clients in the next iteration of
// its main loop.

const (
	// dropDeadEvery is the time between two lists of the clients. It is short, so that few overlooked clients
	// accumulate.
	dropDeadEvery = 10 * time.Second
	// iterationsUntilRemoved is the number of iterations of VPP's main loop after which VPP has removed the
	// overlooked clients from its list. VPP notices in one iteration that the clients have disconnected, and
	// removes them in a later iteration.
	iterationsUntilRemoved = 3
)

type client struct {
	name       string
	descriptor int
}

// dropDeadClients makes VPP notice overlooked clients, immediately and then every dropDeadEvery, until the
// session ends.
func (d Dialer) dropDeadClients(s *Session, noticed func(names []string)) {
	ticker := time.NewTicker(dropDeadEvery)
	defer ticker.Stop()
	for {
		if names := d.dropDeadClientsOnce(s); len(names) > 0 {
			noticed(names)
		}
		select {
		case <-s.done:
			return
		case <-ticker.C:
		}
	}
}

// dropDeadClientsOnce makes VPP notice overlooked clients and returns their names. The result may also
// include a client that has just disconnected in the usual way. VPP stops its workers for each list of
// clients, but not for a ping. VPP answers each ping in a separate iteration of its main loop.
func (d Dialer) dropDeadClientsOnce(s *Session) (names []string) {
	before := s.clients()
	if len(before) < 2 {
		return nil // VPP lists only the session's own client
	}
	if d.provokeSendError() != nil {
		return nil
	}
	for range iterationsUntilRemoved {
		if _, err := s.Call(context.Background(), &memclnt.ControlPing{}); err != nil {
			return nil
		}
	}
	after := s.clients()
	if len(after) == 0 {
		return nil // VPP does not even list the session's own client, so it does not list clients
	}
	for each := range before {
		if !after[each] {
			names = append(names, each.name)
		}
	}
	return names
}

// provokeSendError makes VPP reply to a client that no longer receives. VPP's call that sends the reply fails
// and sets errno to EPIPE. VPP never overlooks this failure, and closes the connection. provokeSendError
// returns when the connection is closed.
func (d Dialer) provokeSendError() error {
	dialed, err := net.DialTimeout("unix", d.Socket, d.Timeout)
	if err != nil {
		return err
	}
	defer dialed.Close()
	conn := dialed.(*net.UnixConn)
	// Stop receiving before the request is sent. If the order were reversed, VPP could reply while the client
	// still receives.
	if err := conn.CloseRead(); err != nil {
		return err
	}
	hello, err := hello("longline-tidy")
	if err != nil {
		return err
	}
	if err := conn.SetDeadline(time.Now().Add(d.Timeout)); err != nil {
		return err
	}
	if _, err := conn.Write(hello); err != nil {
		return err
	}
	return awaitClose(conn)
}

// awaitClose waits until VPP has closed a connection whose reading side is shut down. It waits for a
// hang-up, because a read of such a connection always returns the end of the file. It returns an error of
// the connection, or os.ErrDeadlineExceeded.
func awaitClose(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var polled error
	err = raw.Read(func(fd uintptr) (done bool) {
		state := []unix.PollFd{{Fd: int32(fd)}}
		for {
			if _, polled = unix.Poll(state, 0); polled != unix.EINTR {
				break
			}
		}
		return polled != nil || state[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
	})
	return cmp.Or(err, polled)
}

// clients returns the clients of VPP's API socket. The result is empty if VPP does not list its clients.
func (s *Session) clients() map[client]bool {
	reply, err := s.Call(context.Background(), &vlib.CliInband{Cmd: "show api clients"})
	if err != nil {
		return nil
	}
	return clientsOf(reply.(*vlib.CliInbandReply).Reply)
}

// clientsOf parses the output of vl_sock_api_dump_clients. After a heading, the output has one row for each
// client, with a name and a descriptor. The name may be empty.
func clientsOf(text string) map[client]bool {
	_, text, _ = strings.Cut(text, "Socket clients")
	found := make(map[client]bool)
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		last := len(fields) - 1
		if descriptor, err := strconv.Atoi(fields[last]); err == nil {
			found[client{strings.Join(fields[:last], " "), descriptor}] = true
		}
	}
	return found
}
