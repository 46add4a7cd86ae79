package vppsim

import (
	"net"

	"golang.org/x/sys/unix"
)

// serve hands the segment's memory to whoever connects, and hangs up.
func (s *segment) serve(listener *net.UnixListener) {
	for {
		conn, err := listener.AcceptUnix()
		if err != nil {
			return
		}
		conn.WriteMsgUnix([]byte{0}, unix.UnixRights(int(s.file.Fd())), nil)
		conn.Close()
	}
}
