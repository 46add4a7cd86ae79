package linetest

import (
	"context"
	"fmt"
	"strings"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/pg"
	"go.fd.io/govpp/binapi/vlib"

	"longline.dev/agent/internal/vpp"
)

// VPP's generators and their streams are for everybody. These are reserved for the agent, one of each: deleting a
// generator confuses VPP's list of the others (pg_interface_delete in vnet/pg/stream.c).
const (
	generatorID   = 0x4c4c0000
	generatorName = "pg1280049152"
	generatorTag  = "longline:line-test"
	streamName    = "longline-test"
)

// Session is what sending needs of a connection to VPP.
type Session interface {
	Has(api.Message) bool
	Call(ctx context.Context, req api.Message) (api.Message, error)
	Dump(ctx context.Context, reqs []api.Message, each func(api.Message)) error
}

var _ Session = (*vpp.Session)(nil)

// needed are the messages without which no frame can be sent.
var needed = []api.Message{&vlib.CliInband{}, &pg.PgCreateInterfaceV3{}, &pg.PgDeleteInterface{}}

// Missing names the first message that this VPP lacks to send test frames, "" if it can send them.
func Missing(has func(api.Message) bool) string {
	for _, message := range needed {
		if !has(message) {
			return message.GetMessageName()
		}
	}
	return ""
}

// IsGenerator reports whether an interface is the agent's generator: a part of the test, and none of the router.
// Between its creation and its tag it has none.
func IsGenerator(m *interfaces.SwInterfaceDetails) bool {
	tag := cutAtNUL(m.Tag)
	return cutAtNUL(m.InterfaceName) == generatorName && (tag == "" || tag == generatorTag)
}

func cutAtNUL(text string) string {
	text, _, _ = strings.Cut(text, "\x00")
	return text
}

// Tidy deletes the agent's own stream and generator, if they are there, and nothing else. It is for after a test and for
// a new connection: who sent before may have been cut off. Error: *CannotError where somebody else has the generator's
// name, *RefusedError, or that of the connection.
func Tidy(ctx context.Context, session Session) error {
	if Missing(session.Has) != "" {
		return nil // and nothing was ever made
	}
	// Before the generator: a stream of none is not safe. Without a stream of the name VPP says so and does nothing.
	if _, _, err := ask(ctx, session, "packet-generator delete "+streamName); err != nil {
		return err
	}
	generator, err := find(ctx, session)
	if err != nil || generator == nil {
		return err
	}
	return call(ctx, session, &pg.PgDeleteInterface{SwIfIndex: generator.SwIfIndex})
}

// find is the agent's generator, nil for none.
func find(ctx context.Context, session Session) (*interfaces.SwInterfaceDetails, error) {
	var found *interfaces.SwInterfaceDetails
	named := &interfaces.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0), NameFilterValid: true, NameFilter: generatorName}
	err := session.Dump(ctx, []api.Message{named}, func(msg api.Message) {
		if m, ok := msg.(*interfaces.SwInterfaceDetails); ok && cutAtNUL(m.InterfaceName) == generatorName {
			found = m
		}
	})
	if err != nil {
		return nil, fmt.Errorf("look for the generator: %w", err)
	}
	if found != nil && !IsGenerator(found) {
		return nil, &CannotError{fmt.Sprintf("somebody else has an interface %s, with the tag %q", generatorName, cutAtNUL(found.Tag))}
	}
	return found, nil
}

// makeGenerator makes the generator and tags it.
func makeGenerator(ctx context.Context, session Session) error {
	reply, err := session.Call(ctx, &pg.PgCreateInterfaceV3{InterfaceID: generatorID})
	if err != nil {
		return fmt.Errorf("make the generator: %w", err)
	}
	made := reply.(*pg.PgCreateInterfaceV3Reply)
	if made.Retval != 0 {
		return &RefusedError{Message: "pg_create_interface_v3", Why: fmt.Sprint(api.RetvalToVPPApiError(made.Retval))}
	}
	return call(ctx, session, &interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: made.SwIfIndex, Tag: generatorTag})
}

// call sends a request and makes VPP's refusal an error.
func call(ctx context.Context, session Session, request api.Message) error {
	reply, err := session.Call(ctx, request)
	if err != nil {
		return fmt.Errorf("%s: %w", request.GetMessageName(), err)
	}
	if retval := vpp.Retval(reply); retval != 0 {
		return &RefusedError{Message: request.GetMessageName(), Why: fmt.Sprint(api.RetvalToVPPApiError(retval))}
	}
	return nil
}

// ask runs a line of the CLI. VPP answers a refusal with a text, and with a code on some lines only.
func ask(ctx context.Context, session Session, line string) (said string, refused bool, err error) {
	reply, err := session.Call(ctx, &vlib.CliInband{Cmd: line})
	if err != nil {
		return "", false, fmt.Errorf("%q: %w", line, err)
	}
	answer := reply.(*vlib.CliInbandReply)
	return strings.TrimSpace(answer.Reply), answer.Retval != 0, nil
}

// order runs a line of the CLI that says nothing when it is done.
func order(ctx context.Context, session Session, line string) error {
	said, refused, err := ask(ctx, session, line)
	if err == nil && (refused || said != "") {
		err = &RefusedError{Message: "cli_inband", Why: fmt.Sprintf("%q answered %q", line, said)}
	}
	return err
}
