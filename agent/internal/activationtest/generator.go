package activationtest

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

// All users of VPP share its packet generators and streams. These names and numbers are reserved for the
// agent, which has only one generator and one stream. If there were several generators, the
// deletion of one generator would corrupt VPP's list of the other generators (pg_interface_delete
// in vnet/pg/stream.c).
const (
	generatorID   = 0x4c4c0000
	generatorName = "pg1280049152"
	generatorTag  = "longline:line-test"
	streamName    = "longline-test"
)

// Session has the methods of a connection to VPP that are needed to send test frames.
type Session interface {
	Has(api.Message) bool
	Call(ctx context.Context, req api.Message) (api.Message, error)
	Dump(ctx context.Context, reqs []api.Message, each func(api.Message)) error
}

var _ Session = (*vpp.Session)(nil)

// needed lists the messages that are needed to send test frames.
var needed = []api.Message{&vlib.CliInband{}, &pg.PgCreateInterfaceV3{}, &pg.PgDeleteInterface{}}

// Missing returns the name of the first message that this VPP lacks for test frames, or "" if it can send
// them.
func Missing(has func(api.Message) bool) string { return vpp.Missing(has, needed...) }

// IsGenerator reports whether an interface is the agent's generator, which is a part of the test and not of
// the router's configuration. It also recognizes the generator before the agent has tagged it.
func IsGenerator(m *interfaces.SwInterfaceDetails) bool {
	tag := vpp.Text(m.Tag)
	return vpp.Text(m.InterfaceName) == generatorName && (tag == "" || tag == generatorTag)
}

// Tidy deletes the agent's stream and generator if they exist. Call it after a test and on a new connection,
// because an earlier test may have been interrupted. It returns *CannotError if another user's interface has
// the generator's name, *vpp.RefusedError, or an error of the connection.
func Tidy(ctx context.Context, session Session) error {
	if Missing(session.Has) != "" {
		return nil // without these messages, no test could start
	}
	// The stream must be deleted before its generator: a stream without a generator is not safe. If
	// the stream does not exist, VPP replies that there is no such stream and does nothing.
	if _, _, err := vpp.RunCLI(ctx, session, "packet-generator delete "+streamName); err != nil {
		return err
	}
	generator, err := find(ctx, session)
	if err != nil || generator == nil {
		return err
	}
	_, err = vpp.Do(ctx, session, &pg.PgDeleteInterface{SwIfIndex: generator.SwIfIndex})
	return err
}

func find(ctx context.Context, session Session) (*interfaces.SwInterfaceDetails, error) {
	var found *interfaces.SwInterfaceDetails
	named := &interfaces.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0), NameFilterValid: true, NameFilter: generatorName}
	err := session.Dump(ctx, []api.Message{named}, func(msg api.Message) {
		if m, ok := msg.(*interfaces.SwInterfaceDetails); ok && vpp.Text(m.InterfaceName) == generatorName {
			found = m
		}
	})
	if err != nil {
		return nil, fmt.Errorf("find the generator: %w", err)
	}
	if found != nil && !IsGenerator(found) {
		return nil, &CannotError{fmt.Sprintf("another client has an interface %s, with the tag %q", generatorName, vpp.Text(found.Tag))}
	}
	return found, nil
}

func makeGenerator(ctx context.Context, session Session) error {
	reply, err := vpp.Do(ctx, session, &pg.PgCreateInterfaceV3{InterfaceID: generatorID})
	if err != nil {
		return err
	}
	made := reply.(*pg.PgCreateInterfaceV3Reply)
	_, err = vpp.Do(ctx, session, &interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: made.SwIfIndex, Tag: generatorTag})
	return err
}
