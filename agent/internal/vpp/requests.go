package vpp

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/vlib"
)

// Caller sends a request and returns VPP's reply.
type Caller interface {
	Call(ctx context.Context, request api.Message) (api.Message, error)
}

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
