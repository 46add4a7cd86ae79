package vppsim

import (
	"net"

	"golang.org/x/sys/unix"
)

// serve hands the segment's memory to whoever connects, and hangs up. The main thread does it.
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
