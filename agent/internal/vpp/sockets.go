package vpp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/codec"
)

const (
	// frameHeader is the size of VPP's msgbuf_t (bytes), which has a queue pointer, the length of the
	// following data, and a mark (vlibmemory/socket_api.c).
	frameHeader = 16
	// longest is the length of the longest message that is accepted (bytes). VPP's table of messages has about
	// 200,000 bytes.
	longest = 16 << 20
	// createID is the number of the message sockclnt_create. This number is fixed, because a client sends the
	// message before it has the table of messages.
	createID = 15
)

// apiSocket is a connection to VPP's API socket after the handshake. It transfers messages in frames.
type apiSocket struct {
	conn   net.Conn
	reader *bufio.Reader
	buffer []byte
	client uint32            // VPP's number for this connection
	table  map[string]uint16 // message name and CRC -> number

	mu     sync.Mutex // protects writer
	writer *bufio.Writer
}

// dialAPISocket connects to VPP and fetches the table of messages. It waits for VPP until ctx ends.
func dialAPISocket(ctx context.Context, socket, name string) (*apiSocket, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	a := &apiSocket{conn: conn, reader: bufio.NewReaderSize(conn, 64<<10), writer: bufio.NewWriterSize(conn, 64<<10), table: make(map[string]uint16)}
	gone := context.AfterFunc(ctx, func() { conn.Close() })
	err = a.greet(name)
	if !gone() {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return a, nil
}

// hello returns the first frame of a connection, which contains sockclnt_create.
func hello(name string) ([]byte, error) {
	message, err := codec.EncodeMsg(&memclnt.SockclntCreate{Name: name}, createID)
	if err != nil {
		return nil, err
	}
	frame := make([]byte, frameHeader, frameHeader+len(message))
	binary.BigEndian.PutUint32(frame[8:12], uint32(len(message)))
	return append(frame, message...), nil
}

func (a *apiSocket) greet(name string) error {
	hello, err := hello(name)
	if err != nil {
		return err
	}
	if _, err := a.conn.Write(hello); err != nil {
		return err
	}
	data, err := a.read()
	if err != nil {
		return err
	}
	reply := new(memclnt.SockclntCreateReply)
	if err := decode(data, reply); err != nil {
		return err
	}
	if reply.Response != 0 {
		return fmt.Errorf("%w: sockclnt_create answered %d", ErrProtocol, reply.Response)
	}
	a.client = reply.Index
	for _, entry := range reply.MessageTable {
		message, _, _ := strings.Cut(entry.Name, "\x00")
		a.table[strings.TrimSuffix(message, "\x13")] = entry.Index
	}
	return nil
}

// read returns the next message. The message is valid until the next call of read.
func (a *apiSocket) read() ([]byte, error) {
	var header [frameHeader]byte
	if _, err := io.ReadFull(a.reader, header[:]); err != nil {
		return nil, err
	}
	length := int(binary.BigEndian.Uint32(header[8:12]))
	if length < minMessage || length > longest {
		return nil, fmt.Errorf("%w: a message of %d bytes", ErrProtocol, length)
	}
	if length > cap(a.buffer) {
		a.buffer = make([]byte, length)
	}
	data := a.buffer[:length:length] // with a larger capacity, the codec would also read bytes of an earlier message
	_, err := io.ReadFull(a.reader, data)
	return data, err
}

// request writes a request's header and buffers the request.
func (a *apiSocket) request(context uint32, data []byte) error {
	binary.BigEndian.PutUint32(data[2:6], a.client)
	binary.BigEndian.PutUint32(data[6:10], context)
	return a.write(data)
}

func (a *apiSocket) write(data []byte) error {
	var header [frameHeader]byte
	binary.BigEndian.PutUint32(header[8:12], uint32(len(data)))
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.writer.Write(header[:]); err != nil {
		return err
	}
	_, err := a.writer.Write(data)
	return err
}

func (a *apiSocket) flush() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.writer.Flush()
}

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
