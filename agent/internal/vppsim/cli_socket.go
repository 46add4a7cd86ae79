package vppsim

import (
	"bufio"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// cliGreeting are the Telnet bytes that VPP sends first on its CLI socket. They request the terminal
// type.
var cliGreeting = []byte{255, 253, 24, 255, 250, 24, 1, 255, 240}

const telnetEnd = 240

// serveCLI serves the CLI socket for clients with the terminal type vppctl. The client sends a command
// line. The response ends with a NUL. Each connection has a goroutine, so that a command may wait.
func (v *vpp) serveCLI(listener *net.UnixListener) {
	for {
		conn, err := listener.AcceptUnix()
		if err != nil {
			return
		}
		v.running.Go(func() { v.serveLines(conn) })
	}
}

func (v *vpp) serveLines(conn net.Conn) {
	defer conn.Close()
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-v.halted:
			conn.Close()
		case <-over:
		}
	}()
	in := bufio.NewReader(conn)
	if _, err := conn.Write(cliGreeting); err != nil {
		return
	}
	if _, err := in.ReadBytes(telnetEnd); err != nil {
		return
	}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		if _, err := conn.Write(append([]byte(v.runLine(strings.TrimSpace(line))), 0)); err != nil {
			return
		}
	}
}

// pingLine is the only form of a ping that the stand-in supports.
var pingLine = regexp.MustCompile(`^ping (\S+) source (\S+) repeat (\d+) interval (\S+)$`)

func (v *vpp) runLine(line string) string {
	m := pingLine.FindStringSubmatch(line)
	if m == nil {
		return fmt.Sprintf("unknown input `%s'\n", line)
	}
	to, err := netip.ParseAddr(m[1])
	repeat, _ := strconv.Atoi(m[3])
	interval, intervalErr := strconv.ParseFloat(m[4], 64)
	if err != nil || intervalErr != nil {
		return fmt.Sprintf("unknown input `%s'\n", line)
	}
	return v.ping(to, m[2], repeat, time.Duration(interval*float64(time.Second)))
}
