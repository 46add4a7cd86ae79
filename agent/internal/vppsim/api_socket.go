package vppsim

import (
	"bufio"
	"net"
	"os"

	"go.fd.io/govpp/api"
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
	c := newClient(conn, v.lastClient, v)
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
