package vpp

import (
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/vlib"
)

// UnsupportedError says that this VPP's message table lacks a message.
type UnsupportedError struct{ Message string }

func (e *UnsupportedError) Error() string {
	return "vpp: this release or its set of plugins has no message " + e.Message
}

// Call sends one request and returns its reply with any return code.
func (s *Session) Call(ctx context.Context, req api.Message) (api.Message, error) {
	replies, err := s.Calls(ctx, []api.Message{req})
	if err != nil {
		return nil, err
	}
	return replies[0], nil
}

// Calls sends the requests in order, pipelined. It returns reply i for request i, with any return code. An
// error means that an unknown part of the requests was carried out.
func (s *Session) Calls(ctx context.Context, reqs []api.Message) ([]api.Message, error) {
	replies := make([]api.Message, len(reqs))
	contexts := make([]uint32, 0, len(reqs))
	done, pending := false, newPendingCall()
	defer func() { s.forget(!done, contexts...) }()
	for answered := 0; answered < len(reqs); {
		for sent := len(contexts); sent < len(reqs) && sent-answered < window; sent++ {
			context, err := s.send(reqs[sent], func(msg api.Message) {
				if replies[sent] != nil {
					s.failLocked(fmt.Errorf("%w: a second %s", ErrProtocol, msg.GetMessageName()))
					return
				}
				replies[sent] = msg
				pending.noteAnswer(false)
			})
			if err != nil {
				return nil, err
			}
			contexts = append(contexts, context)
		}
		if err := s.flush(); err != nil {
			return nil, err
		}
		answered = len(contexts)
		if answered < len(reqs) {
			answered -= window / 2 // VPP still works on the other half while more requests are sent
		}
		if err := s.await(ctx, pending, answered); err != nil {
			return nil, err
		}
	}
	done = true
	for i, reply := range replies {
		if want := reqs[i].GetMessageName() + "_reply"; reply.GetMessageName() != want {
			err := fmt.Errorf("%w: %s instead of %s", ErrProtocol, reply.GetMessageName(), want)
			s.fail(err)
			return nil, err
		}
	}
	return replies, nil
}

// Dump sends the requests. Then it calls the function each with every message that answers one of the
// requests, in order. A control_ping after the requests marks the end, because some dumps end without a reply
// (gre_tunnel_dump on 25.10 and 26.02). The reply to the ping also identifies the VPP process, which must be
// the process in Info. each must be quick and must not use the session.
func (s *Session) Dump(ctx context.Context, reqs []api.Message, each func(api.Message)) error {
	return s.DumpEach(ctx, reqs, func(_ int, answer api.Message) { each(answer) })
}

// DumpEach does the same as Dump. The function each also gets the position in reqs of the request that the
// message answers.
func (s *Session) DumpEach(ctx context.Context, reqs []api.Message, each func(request int, answer api.Message)) error {
	for first := 0; first < len(reqs); first += window {
		block := reqs[first:min(first+window, len(reqs))]
		if err := s.dump(ctx, block, func(i int, answer api.Message) { each(first+i, answer) }); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) dump(ctx context.Context, reqs []api.Message, each func(int, api.Message)) error {
	var contexts []uint32
	done := false
	defer func() { s.forget(!done, contexts...) }()
	pending := newPendingCall()
	for i, req := range append(reqs[:len(reqs):len(reqs)], &memclnt.ControlPing{}) {
		handle := func(msg api.Message) { each(i, msg); pending.noteAnswer(false) }
		if i == len(reqs) {
			handle = func(msg api.Message) {
				if ping, ok := msg.(*memclnt.ControlPingReply); !ok || ping.VpePID != s.info.PID {
					s.failLocked(fmt.Errorf("%w: %s instead of a ping of process %d", ErrProtocol, msg.GetMessageName(), s.info.PID))
					return
				}
				pending.noteAnswer(true)
			}
		}
		context, err := s.send(req, handle)
		if err != nil {
			return err
		}
		contexts = append(contexts, context)
	}
	if err := s.flush(); err != nil {
		return err
	}
	if err := s.await(ctx, pending, 0); err != nil {
		return err
	}
	done = true
	return nil
}

// Retval returns the return code of a reply; 0 is success.
func Retval(reply api.Message) int32 {
	if field, has := retval(reply); has {
		return int32(field.Int())
	}
	return 0
}

// CreatedInterface returns the index of the interface that VPP created for a request. ok is false if the reply has
// no such index.
func CreatedInterface(reply api.Message) (index interface_types.InterfaceIndex, ok bool) {
	field, has := swIfIndex(reply)
	if !has {
		return 0, false
	}
	return interface_types.InterfaceIndex(field.Uint()), true
}

var retval, swIfIndex = fieldNamed("Retval"), fieldNamed("SwIfIndex")

// fieldNamed returns a function that returns a field of a reply, or false if the reply has no such field. It caches
// the position of the field for each type of reply, because finding a field by its name is slow.
func fieldNamed(name string) func(api.Message) (reflect.Value, bool) {
	var positions sync.Map // -1 if a type has no such field
	return func(reply api.Message) (reflect.Value, bool) {
		value := reflect.ValueOf(reply).Elem()
		at, known := positions.Load(value.Type())
		if !known {
			at = -1
			if field, has := value.Type().FieldByName(name); has {
				at = field.Index[0]
			}
			positions.Store(value.Type(), at)
		}
		if at.(int) < 0 {
			return reflect.Value{}, false
		}
		return value.Field(at.(int)), true
	}
}

// pendingCall is a call that waits for replies. Each reply shows that VPP is alive, but only the last
// necessary reply wakes the waiting goroutine. With thousands of replies, a wake-up for each reply would take
// longer than the replies themselves. All fields except the channel are protected by the session's lock.
type pendingCall struct {
	received int  // number of replies received
	until    int  // number of replies to wait for, 0 for all
	over     bool // the last reply has arrived

	enough chan struct{} // receives a token when enough replies have arrived
}

func newPendingCall() *pendingCall { return &pendingCall{enough: make(chan struct{}, 1)} }

// noteAnswer counts a reply. last means that no other reply follows.
func (p *pendingCall) noteAnswer(last bool) {
	p.received++
	p.over = p.over || last
	if p.received == p.until || p.over {
		select {
		case p.enough <- struct{}{}:
		default:
		}
	}
}

// await waits until the given number of replies has arrived since the call began. If until is 0, await waits
// for the last reply. If no reply arrives for longer than the session's timeout, await ends the session and
// returns ErrTimeout, at the latest after twice the timeout.
func (s *Session) await(ctx context.Context, p *pendingCall, until int) error {
	s.mu.Lock()
	p.until = until
	received, enough := p.received, p.over || until > 0 && p.received >= until
	s.mu.Unlock()
	if enough {
		return nil
	}
	timer := time.NewTimer(s.timeout)
	defer timer.Stop()
	for {
		select {
		case <-p.enough:
			return nil
		case <-s.done:
			return s.Err()
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		before := received
		s.mu.Lock()
		received = p.received
		s.mu.Unlock()
		if received == before {
			s.fail(ErrTimeout)
			return ErrTimeout
		}
		timer.Reset(s.timeout)
	}
}

// Caller sends a request and returns VPP's reply.
type Caller interface {
	Call(ctx context.Context, request api.Message) (api.Message, error)
}

// Reader also reads lists, and knows which messages VPP has.
type Reader interface {
	Caller
	Has(api.Message) bool
	Dump(ctx context.Context, requests []api.Message, each func(api.Message)) error
}

var _ Reader = (*Session)(nil)

// Missing returns the name of the first message that this VPP lacks, or "" if it has all of them. has reports
// whether VPP has a message.
func Missing(has func(api.Message) bool, messages ...api.Message) string {
	for _, message := range messages {
		if !has(message) {
			return message.GetMessageName()
		}
	}
	return ""
}

// RefusedError is a request that VPP refused.
type RefusedError struct{ Message, Why string }

func (e *RefusedError) Error() string { return "VPP refused " + e.Message + ": " + e.Why }

// Do sends a request and returns VPP's reply. It returns *RefusedError if VPP refuses the request, or an
// error of the connection.
func Do(ctx context.Context, session Caller, request api.Message) (api.Message, error) {
	reply, err := session.Call(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", request.GetMessageName(), err)
	}
	if retval := Retval(reply); retval != 0 {
		return nil, &RefusedError{Message: request.GetMessageName(), Why: fmt.Sprint(api.RetvalToVPPApiError(retval))}
	}
	return reply, nil
}

// RunCLI runs a CLI command through the binary API and returns its output. VPP reports a refusal as text in
// the output, and for some commands also as a return code (refused).
func RunCLI(ctx context.Context, session Caller, line string) (output string, refused bool, err error) {
	reply, err := session.Call(ctx, &vlib.CliInband{Cmd: line})
	if err != nil {
		return "", false, fmt.Errorf("%q: %w", line, err)
	}
	answer := reply.(*vlib.CliInbandReply)
	return strings.TrimSpace(answer.Reply), answer.Retval != 0, nil
}

// Order runs a CLI command that prints nothing on success. It returns *RefusedError, or an error of the
// connection.
func Order(ctx context.Context, session Caller, line string) error {
	output, refused, err := RunCLI(ctx, session, line)
	if err == nil && (refused || output != "") {
		err = &RefusedError{Message: "cli_inband", Why: fmt.Sprintf("%q answered %q", line, output)}
	}
	return err
}

// RouteLookup returns the request for the best route to an address in a table.
func RouteLookup(table uint32, to netip.Addr) api.Message {
	return &ip.IPRouteLookup{TableID: table, Prefix: ip_types.Prefix{Address: IPAddress(to), Len: uint8(to.BitLen())}}
}

// Leads reports whether at least one path of a route does not drop packets.
func Leads(route ip.IPRoute) bool {
	return slices.ContainsFunc(route.Paths, func(path fib_types.FibPath) bool {
		switch path.Type {
		case fib_types.FIB_API_PATH_TYPE_DROP, fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH, fib_types.FIB_API_PATH_TYPE_ICMP_PROHIBIT:
			return false
		}
		return true
	})
}

// Text returns a field of fixed length up to its first NUL.
func Text(fixed string) string {
	text, _, _ := strings.Cut(fixed, "\x00")
	return text
}

// NetipAddr converts an address from the type that VPP's messages use.
func NetipAddr(a ip_types.Address) netip.Addr {
	if a.Af == ip_types.ADDRESS_IP6 {
		return netip.AddrFrom16(a.Un.GetIP6())
	}
	return netip.AddrFrom4(a.Un.GetIP4())
}

// IPAddress converts an address to the type that VPP's messages use.
func IPAddress(a netip.Addr) ip_types.Address {
	if a.Is6() {
		return ip_types.Address{Af: ip_types.ADDRESS_IP6, Un: ip_types.AddressUnionIP6(a.As16())}
	}
	return ip_types.Address{Af: ip_types.ADDRESS_IP4, Un: ip_types.AddressUnionIP4(a.As4())}
}
