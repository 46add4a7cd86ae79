package vpp

import (
	"context"
	"fmt"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/vlib"
)

// Caller sends a request and returns VPP's reply.
type Caller interface {
	Call(ctx context.Context, request api.Message) (api.Message, error)
}

// RefusedError is what VPP did not do.
type RefusedError struct{ Message, Why string }

func (e *RefusedError) Error() string { return "VPP refused " + e.Message + ": " + e.Why }

// Do sends a request and makes VPP's refusal an error. Error: *RefusedError, or that of the connection.
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

// Say runs a line of the CLI and returns what it printed. VPP answers a refusal with a text, and with a code on some
// lines only.
func Say(ctx context.Context, session Caller, line string) (said string, refused bool, err error) {
	reply, err := session.Call(ctx, &vlib.CliInband{Cmd: line})
	if err != nil {
		return "", false, fmt.Errorf("%q: %w", line, err)
	}
	answer := reply.(*vlib.CliInbandReply)
	return strings.TrimSpace(answer.Reply), answer.Retval != 0, nil
}

// Order runs a line of the CLI that says nothing when it is done. Error: *RefusedError, or that of the connection.
func Order(ctx context.Context, session Caller, line string) error {
	said, refused, err := Say(ctx, session, line)
	if err == nil && (refused || said != "") {
		err = &RefusedError{Message: "cli_inband", Why: fmt.Sprintf("%q answered %q", line, said)}
	}
	return err
}

// Text is a field of fixed length up to its first NUL.
func Text(fixed string) string {
	text, _, _ := strings.Cut(fixed, "\x00")
	return text
}
