package vpp

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"time"
)

// The bytes of the Telnet protocol that VPP's CLI socket uses (RFC 854, RFC 1091).
const (
	telnetIAC  = 255
	telnetSB   = 250
	telnetSE   = 240
	telnetType = 24
)

// lineClient announces the terminal type by which VPP recognizes a program. For a program, VPP uses no echo,
// prompt or pager, and sends a NUL after each response (vlib/unix/cli.c).
var lineClient = slices.Concat([]byte{telnetIAC, telnetSB, telnetType, 0}, []byte("vppctl"), []byte{telnetIAC, telnetSE})

// maxAnswer is the length of the longest CLI response that is accepted (bytes).
const maxAnswer = 1 << 20

// CLI runs a command on VPP's CLI socket and returns its output. VPP has a separate process for each
// connection to this socket, so a command that waits, such as ping, does not delay other clients. If the same
// command is sent through the binary API, it delays other clients.
func CLI(ctx context.Context, socket, command string) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return "", fmt.Errorf("vpp cli: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	answer, err := converse(conn, command)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return "", fmt.Errorf("vpp cli: %q: %w", command, err)
	}
	return answer, nil
}

func converse(conn net.Conn, command string) (string, error) {
	in := bufio.NewReader(conn)
	var answer bytes.Buffer
	for requested := false; answer.Len() < maxAnswer; {
		b, err := in.ReadByte()
		switch {
		case err != nil:
			return "", err
		case b == telnetIAC:
			option, err := readOption(in)
			if err != nil {
				return "", err
			}
			if option == telnetType && !requested {
				requested = true
				if _, err := conn.Write(slices.Concat(lineClient, []byte(command+"\n"))); err != nil {
					return "", err
				}
			}
		case b == 0 && requested:
			return answer.String(), nil
		case requested:
			answer.WriteByte(b)
		}
	}
	return "", fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
}

// readOption reads the bytes after IAC. If VPP requests the value of an option, readOption returns this
// option, otherwise 0.
func readOption(in *bufio.Reader) (byte, error) {
	verb, err := in.ReadByte()
	if err != nil {
		return 0, err
	}
	option, err := in.ReadByte()
	if verb != telnetSB || err != nil {
		return 0, err
	}
	_, err = in.ReadSlice(telnetSE)
	return option, err
}
