package vpp

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"
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
	value := reflect.ValueOf(reply).Elem()
	at, known := retvals.Load(value.Type())
	if !known {
		field, has := value.Type().FieldByName("Retval")
		at = -1
		if has {
			at = field.Index[0]
		}
		retvals.Store(value.Type(), at)
	}
	if at.(int) < 0 {
		return 0
	}
	return int32(value.Field(at.(int)).Int())
}

// retvals caches the position of the field with the return code for each type of reply, because finding a
// field by its name is slow. The position is -1 if a type has no such field.
var retvals sync.Map
