package calibration

import (
	"context"
	"fmt"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/vlib"

	"longline.dev/agent/internal/vpp"
)

// CannotError says why nothing can be measured in this VPP.
type CannotError struct{ Why string }

func (e *CannotError) Error() string { return e.Why }

// RefusedError is what VPP did not do.
type RefusedError struct{ Message, Why string }

func (e *RefusedError) Error() string { return "VPP refused " + e.Message + ": " + e.Why }

// call sends a request and makes VPP's refusal an error.
func call(ctx context.Context, session Session, request api.Message) (api.Message, error) {
	reply, err := session.Call(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", request.GetMessageName(), err)
	}
	if retval := vpp.Retval(reply); retval != 0 {
		return nil, &RefusedError{Message: request.GetMessageName(), Why: fmt.Sprint(api.RetvalToVPPApiError(retval))}
	}
	return reply, nil
}

// say runs a line of the CLI and returns what it printed, refusals included.
func say(ctx context.Context, session Session, line string) (string, error) {
	reply, err := session.Call(ctx, &vlib.CliInband{Cmd: line})
	if err != nil {
		return "", fmt.Errorf("%q: %w", line, err)
	}
	return reply.(*vlib.CliInbandReply).Reply, nil
}

// order runs a line of the CLI that says nothing when it is done.
func order(ctx context.Context, session Session, line string) error {
	said, err := say(ctx, session, line)
	if err == nil && strings.TrimSpace(said) != "" {
		err = &RefusedError{Message: "cli_inband", Why: fmt.Sprintf("%q answered %q", line, said)}
	}
	return err
}
