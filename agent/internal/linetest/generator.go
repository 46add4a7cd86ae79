package linetest

import (
	"context"
	"fmt"

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
	tag := vpp.Text(m.Tag)
	return vpp.Text(m.InterfaceName) == generatorName && (tag == "" || tag == generatorTag)
}

// Tidy deletes the agent's own stream and generator, if they are there, and nothing else. It is for after a test and for
// a new connection: who sent before may have been cut off. Error: *CannotError where somebody else has the generator's
// name, *vpp.RefusedError, or that of the connection.
func Tidy(ctx context.Context, session Session) error {
	if Missing(session.Has) != "" {
		return nil // and nothing was ever made
	}
	// Before the generator: a stream of none is not safe. Without a stream of the name VPP says so and does nothing.
	if _, _, err := vpp.Say(ctx, session, "packet-generator delete "+streamName); err != nil {
		return err
	}
	generator, err := find(ctx, session)
	if err != nil || generator == nil {
		return err
	}
	_, err = vpp.Do(ctx, session, &pg.PgDeleteInterface{SwIfIndex: generator.SwIfIndex})
	return err
}

// find is the agent's generator, nil for none.
func find(ctx context.Context, session Session) (*interfaces.SwInterfaceDetails, error) {
	var found *interfaces.SwInterfaceDetails
	named := &interfaces.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0), NameFilterValid: true, NameFilter: generatorName}
	err := session.Dump(ctx, []api.Message{named}, func(msg api.Message) {
		if m, ok := msg.(*interfaces.SwInterfaceDetails); ok && vpp.Text(m.InterfaceName) == generatorName {
			found = m
		}
	})
	if err != nil {
		return nil, fmt.Errorf("look for the generator: %w", err)
	}
	if found != nil && !IsGenerator(found) {
		return nil, &CannotError{fmt.Sprintf("somebody else has an interface %s, with the tag %q", generatorName, vpp.Text(found.Tag))}
	}
	return found, nil
}

// makeGenerator makes the generator and tags it.
func makeGenerator(ctx context.Context, session Session) error {
	reply, err := vpp.Do(ctx, session, &pg.PgCreateInterfaceV3{InterfaceID: generatorID})
	if err != nil {
		return err
	}
	made := reply.(*pg.PgCreateInterfaceV3Reply)
	_, err = vpp.Do(ctx, session, &interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: made.SwIfIndex, Tag: generatorTag})
	return err
}
