package vpp

import (
	"context"
	"net"
	"strconv"
	"strings"
	"time"

	"go.fd.io/govpp/binapi/vlib"
)

// VPP overlooks that a client is gone while errno of its main thread happens to be EAGAIN, as heavy traffic on its API
// leaves it: vl_socket_read_ready in vlibmemory/socket_api.c takes a read of 0 bytes for an error and asks errno
// (23.10 to 26.06). Such a client stays listed, keeps the main thread busy, and sixteen of them stop it for good.
// Whatever fails on that thread with another errno has all of them noticed at once.

const (
	// dropDeadEvery is how often VPP is asked for its clients; those that are overlooked must not become many.
	dropDeadEvery = 10 * time.Second
	// noticedWithin is ample for VPP to close what it notices (vpp.md: each turn of its main loop).
	noticedWithin = 100 * time.Millisecond
)

// client is one that VPP lists.
type client struct {
	name       string
	descriptor int
}

// dropDeadClients has VPP notice overlooked clients, at once and then every now and then, until the session ends.
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

// dropDeadClientsOnce returns the names of those that VPP noticed. One that left by itself at that moment is among
// them.
func (d Dialer) dropDeadClientsOnce(s *Session) (names []string) {
	before := s.clients()
	if len(before) < 2 {
		return nil // the session's own
	}
	if d.provokeSendError() != nil {
		return nil
	}
	time.Sleep(noticedWithin)
	after := s.clients()
	if len(after) == 0 {
		return nil
	}
	for each := range before {
		if !after[each] {
			names = append(names, each.name)
		}
	}
	return names
}

// provokeSendError has VPP answer somebody who takes no answers: its send fails with EPIPE, which is errno from then
// on. That failure, other than an end of file, is never overlooked, so nothing is left of this connection.
func (d Dialer) provokeSendError() error {
	dialed, err := net.DialTimeout("unix", d.Socket, d.Timeout)
	if err != nil {
		return err
	}
	defer dialed.Close()
	conn := dialed.(*net.UnixConn)
	// Before the request: closed after it, VPP may have answered already.
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
	_, err = conn.Write(hello)
	return err
}

// clients are those on VPP's API socket; empty when VPP does not tell.
func (s *Session) clients() map[client]bool {
	reply, err := s.Call(context.Background(), &vlib.CliInband{Cmd: "show api clients"})
	if err != nil {
		return nil
	}
	return clientsOf(reply.(*vlib.CliInbandReply).Reply)
}

// clientsOf reads what vl_sock_api_dump_clients prints: a heading, then a name, which may be empty, and a descriptor
// in each line.
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
