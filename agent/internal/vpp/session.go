// Package vpp implements VPP's binary API over VPP's Unix socket. A Session is one connection. Many requests
// can be in flight. The context number of a request identifies its replies.
//
// It uses the messages of govpp and their codec, but not govpp's stream layer and socket adapter. The stream
// layer drops a reply that is not collected within 100 ms. If an interface were missing in a dump for this
// reason, the agent could try to create an interface that exists. The socket adapter panics on a message of
// less than six bytes.
package vpp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/codec"

	"go.fd.io/govpp/binapi/bfd"
	"go.fd.io/govpp/binapi/classify"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/memclnt"

	"longline.dev/agent/internal/arraylength"
)

var (
	// ErrTimeout ends the session because VPP did not reply in time. The agent then does not know whether VPP
	// carries out the pending requests.
	ErrTimeout = errors.New("vpp: no reply in time")
	// ErrProtocol ends the session because VPP sent a message that cannot be decoded or was not expected.
	ErrProtocol = errors.New("vpp: unexpected message")
	// ErrClosed is the reason for the end of a session that was closed with Close.
	ErrClosed = errors.New("vpp: session closed")
)

// window is the number of requests in flight. Measured on an idle VPP: 3,471 requests/s with 1 request in
// flight, and 101,626 requests/s with 64. More requests in flight hardly increase the rate.
const window = 64

// goodbye is the longest time that closing a session may take.
const goodbye = time.Second

// minMessage is the size of the shortest reply (bytes), which has a message number and a context number.
// minRequest is the size of the shortest request (bytes), which also has a client number.
const (
	minMessage = 6
	minRequest = 10
)

// Session is one connection to one VPP process. It is safe for concurrent use. A session never recovers:
// after an error it stays ended, and its owner has to open another session.
type Session struct {
	info    Info
	sock    *apiSocket
	lock    *os.File // the lock of an agent (lockForOneAgent); nil for other programs
	timeout time.Duration
	indices func(bootMS int64) (int, int64, error) // Dialer.Interfaces
	types   map[uint16]messageType
	events  chan *interfaces.SwInterfaceEvent
	paths   chan *bfd.BfdUDPSessionEvent

	mu      sync.Mutex
	context uint32
	calls   map[uint32]func(api.Message)
	givenUp map[uint32]bool // requests whose caller no longer waits
	err     error
	done    chan struct{}
	silent  chan struct{} // closed when nothing more can arrive
	left    chan struct{} // closed when VPP has removed the client, or does not respond
}

func key(msg api.Message) string { return msg.GetMessageName() + "_" + msg.GetCrcString() }

type messageType struct {
	kind    api.MessageType
	typ     reflect.Type
	answers bool // a message of this type answers a request
}

// Info returns the identity of VPP, read when the session was opened.
func (s *Session) Info() Info { return s.info }

// Interfaces returns the number of interface indices that VPP has assigned, and the epoch of its stats
// segment. While the epoch is the same, no interface has been created or deleted. It returns an error if the
// values are not known.
func (s *Session) Interfaces() (indices int, epoch int64, err error) {
	if s.indices == nil {
		return 0, 0, errors.New("vpp: no stats segment")
	}
	return s.indices(s.info.BootMS)
}

// Done returns a channel that is closed when the session has ended. Err then returns the reason.
func (s *Session) Done() <-chan struct{} { return s.done }

// Err returns the reason why the session has ended, or nil while it has not ended.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Events returns the channel of interface events. When the channel is full, the next event is dropped. This
// is acceptable because each event only means that something has to be read again.
func (s *Session) Events() <-chan *interfaces.SwInterfaceEvent { return s.events }

// PathEvents returns the channel of BFD session events. When the channel is full, the next event is dropped.
func (s *Session) PathEvents() <-chan *bfd.BfdUDPSessionEvent { return s.paths }

// Close ends the session. It returns when VPP has removed the client.
func (s *Session) Close() {
	s.fail(ErrClosed)
	<-s.left
}

func (s *Session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failLocked(err)
}

func (s *Session) failLocked(err error) {
	if s.err != nil {
		return
	}
	s.err = err
	clear(s.calls)
	close(s.done)
	go s.leave(err)
}

// leave deregisters the client if VPP responds, because VPP may overlook a connection that is only closed
// (dead_clients.go). It releases the agent's lock after VPP has carried out all pending requests.
func (s *Session) leave(why error) {
	defer close(s.left)
	defer s.lock.Close()
	defer s.sock.conn.Close()
	if errors.Is(why, ErrTimeout) {
		return // if VPP replies later, its send fails because the connection is closed, and VPP does not overlook this failure
	}
	_ = s.sock.conn.SetDeadline(time.Now().Add(goodbye))
	id := s.sock.table[key(&memclnt.SockclntDelete{})]
	data, err := codec.EncodeMsg(&memclnt.SockclntDelete{Index: s.sock.client}, id)
	if err != nil || s.sock.request(0, data) != nil || s.sock.flush() != nil {
		return
	}
	<-s.silent
}

// Has reports whether this VPP has the message with the same CRC. Messages with the same CRC have the same
// fields.
func (s *Session) Has(msg api.Message) bool {
	_, known := s.sock.table[key(msg)]
	return known
}

// send registers the function handle for every message that answers req, buffers req, and returns the context
// number of req. A later call of flush sends req. handle runs on the reader's goroutine with the session
// locked: it must be quick and must not use the session.
func (s *Session) send(req api.Message, handle func(api.Message)) (uint32, error) {
	id, known := s.sock.table[key(req)]
	if !known {
		return 0, &UnsupportedError{Message: req.GetMessageName()}
	}
	data, err := codec.EncodeMsg(req, id)
	if err != nil {
		return 0, fmt.Errorf("vpp: encode %s: %w", req.GetMessageName(), err)
	}
	s.mu.Lock()
	if s.err != nil {
		defer s.mu.Unlock()
		return 0, s.err
	}
	s.context++
	if s.context == 0 { // 0 marks messages that answer no request
		s.context = 1
	}
	context := s.context
	s.calls[context] = handle
	s.mu.Unlock()
	if err := s.sock.request(context, data); err != nil {
		err = fmt.Errorf("vpp: send %s: %w", req.GetMessageName(), err)
		s.fail(err)
		return 0, err
	}
	return context, nil
}

func (s *Session) flush() error {
	if err := s.sock.flush(); err != nil {
		err = fmt.Errorf("vpp: send: %w", err)
		s.fail(err)
		return err
	}
	return nil
}

// forget stops waiting for replies to the requests with these context numbers. If givenUp is true, replies
// may still arrive, and the session ignores them. If givenUp is false, the last reply has arrived, and a
// further reply is an error.
func (s *Session) forget(givenUp bool, contexts ...uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range contexts {
		delete(s.calls, c)
		if givenUp {
			s.givenUp[c] = true
		}
	}
}

func (s *Session) receiveAll() {
	defer close(s.silent)
	for {
		data, err := s.sock.read()
		if err != nil {
			s.fail(fmt.Errorf("vpp: receive: %w", err))
			return
		}
		s.receive(data)
	}
}

// receive processes one message of at least minMessage bytes, which is valid only during the call.
func (s *Session) receive(data []byte) {
	known, ok := s.types[binary.BigEndian.Uint16(data)]
	if !ok {
		s.receiveUnknown(data)
		return
	}
	if known.kind == api.RequestMessage && len(data) < minRequest {
		s.fail(fmt.Errorf("%w: %d bytes", ErrProtocol, len(data)))
		return
	}
	if !known.answers {
		switch known.typ {
		case reflect.TypeFor[interfaces.SwInterfaceEvent]():
			receiveEvent(s, data, s.events)
		case reflect.TypeFor[bfd.BfdUDPSessionEvent]():
			receiveEvent(s, data, s.paths)
		}
		return
	}
	context, err := codec.DecodeMsgContext(data, known.kind)
	if err != nil {
		s.fail(fmt.Errorf("%w: %w", ErrProtocol, err))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	handle, waited := s.calls[context]
	if !waited {
		if !s.givenUp[context] {
			// The message may belong to a dump, and the dump would be incomplete without the message.
			s.failLocked(fmt.Errorf("%w: %s answers no pending request", ErrProtocol, known.typ.Name()))
		}
		return
	}
	msg := reflect.New(known.typ).Interface().(api.Message)
	if err := decode(data, msg); err != nil {
		s.failLocked(err)
		return
	}
	handle(msg)
}

// receiveUnknown ignores a message that the agent does not know, unless the message answers a request. In
// that case it ends the session, because a dump could be incomplete.
func (s *Session) receiveUnknown(data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, waited := s.calls[binary.BigEndian.Uint32(data[2:6])]; waited {
		s.failLocked(fmt.Errorf("%w: an answer with the unknown number %d", ErrProtocol, binary.BigEndian.Uint16(data)))
	}
}

// answerHeader is the size of the message number and the context of a reply.
const answerHeader = 6

// decode decodes a message. If the message cannot be decoded, the error is ErrProtocol. The codec panics on a
// truncated message, because it reads beyond the end.
func decode(data []byte, msg api.Message) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w: %s cannot be read: %v", ErrProtocol, msg.GetMessageName(), cause)
		}
	}()
	if info, is := msg.(*classify.ClassifyTableInfoReply); is && int32(binary.BigEndian.Uint32(data[answerHeader:])) != 0 {
		// VPP fills the rest of a refusal with uninitialized memory (vl_api_classify_table_info_t_handler).
		*info = classify.ClassifyTableInfoReply{Retval: int32(binary.BigEndian.Uint32(data[answerHeader:]))}
		return nil
	}
	if err := arraylength.Check(data, answerHeader, msg); err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if err := codec.DecodeMsg(data, msg); err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return nil
}

// receiveEvent decodes an event, and drops it if the channel is full.
func receiveEvent[T any, Event interface {
	*T
	api.Message
}](s *Session, data []byte, to chan<- Event) {
	event := Event(new(T))
	if err := decode(data, event); err != nil {
		s.fail(err)
		return
	}
	select {
	case to <- event:
	default:
	}
}
