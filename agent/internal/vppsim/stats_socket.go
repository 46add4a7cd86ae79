package vppsim

import (
	"net"

	"golang.org/x/sys/unix"
)

// serve sends the memory of the segment to each client and closes the connection. This happens on the
// main thread.
func (s *segment) serve(listener *net.UnixListener, occupy func() (func(), bool)) {
	for {
		conn, err := listener.AcceptUnix()
		if err != nil {
			return
		}
		free, _ := occupy()
		conn.WriteMsgUnix([]byte{0}, unix.UnixRights(int(s.file.Fd())), nil)
		conn.Close()
		free()
	}
}
