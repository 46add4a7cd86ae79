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

	"go.fd.io/govpp/binapi/fib_types"
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

// echo is an ICMP echo request or reply on its way through the underlay.
type echo struct {
	ID       int  `json:"id"`
	Sequence int  `json:"sequence"`
	Reply    bool `json:"reply"`
}

// ping sends echo requests and returns output like that of plugins/ping/ping.c. As in VPP, it waits for the
// whole interval even after the last request.
func (v *vpp) ping(to netip.Addr, source string, repeat int, interval time.Duration) string {
	v.mu.Lock()
	from, table, found := v.sourceAddress(source, to.Is6())
	v.lastEcho++
	id, replies := v.lastEcho, make(chan int, repeat)
	v.echoes[id] = replies
	v.mu.Unlock()
	defer func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.echoes, id)
	}()
	var b strings.Builder
	sent, received := make([]time.Time, 0, repeat), 0
	for sequence := range repeat {
		if !found {
			b.WriteString("Failed: no source address for egress interface\n")
			continue
		}
		sent = append(sent, time.Now())
		v.mu.Lock()
		v.sendEcho(table, frames{Source: from, Destination: to, Echo: &echo{ID: id, Sequence: sequence}})
		v.mu.Unlock()
		for next := time.After(interval); next != nil; {
			select {
			case <-v.halted:
				return ""
			case <-next:
				next = nil
			case n := <-replies:
				received++
				fmt.Fprintf(&b, "116 bytes from %s: icmp_seq=%d ttl=64 time=%.4f ms\n", to, n+1, time.Since(sent[n]).Seconds()*1000)
			}
		}
	}
	lost := 0.0
	if len(sent) > 0 {
		lost = 100 * float64(len(sent)-received) / float64(len(sent))
	}
	fmt.Fprintf(&b, "\nStatistics: %d sent, %d received, %f%% packet loss\n", len(sent), received, lost)
	return b.String()
}

// sourceAddress returns the first address of a family on an interface, and the FIB table of that address.
func (v *vpp) sourceAddress(name string, is6 bool) (from netip.Addr, table uint32, found bool) {
	if i := v.named(name); i != nil {
		for _, prefix := range i.addresses {
			if address := netipAddr(prefix.Address); address.Is6() == is6 {
				return address, i.tables[family(is6)], true
			}
		}
	}
	return netip.Addr{}, 0, false
}

// sendEcho sends an echo by the routes of a table to the router that has the destination address. This
// may be the same router.
func (v *vpp) sendEcho(table uint32, f frames) {
	switch v.fib().follow(table, f.Destination).path {
	case fib_types.FIB_API_PATH_TYPE_LOCAL:
		v.echoArrives(f)
	case fib_types.FIB_API_PATH_TYPE_NORMAL:
		if v.underlay.folder != nil && !v.links().Down {
			v.underlay.send(f)
		}
	}
}

// echoArrives replies to an echo request. It passes an echo reply to the ping that waits for it.
func (v *vpp) echoArrives(f frames) {
	local := v.upWith(f.Destination)
	if local == nil {
		return
	}
	if !f.Echo.Reply {
		v.sendEcho(local.tables[family(f.Destination.Is6())], frames{Source: f.Destination, Destination: f.Source, Echo: &echo{f.Echo.ID, f.Echo.Sequence, true}})
		return
	}
	if replies := v.echoes[f.Echo.ID]; replies != nil {
		select {
		case replies <- f.Echo.Sequence:
		default: // the ping has already got all replies that it waits for
		}
	}
}
