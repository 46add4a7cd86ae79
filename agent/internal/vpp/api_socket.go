package vpp

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"

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
