package main

import (
	"context"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip"

	"longline.dev/agent/internal/vpp"
)

// walkMs is how often VPP then looks for pieces of packets whose rest never came. By itself it does so 20 times a second for
// either address family, and waits for the last millisecond before each of them without sleep.
const walkMs = 1000

// walkSlowly changes nothing else: how long VPP waits for the rest, and for how many packets at once.
func walkSlowly(ctx context.Context, session *vpp.Session) error {
	for _, isIP6 := range []bool{false, true} {
		now, err := called(ctx, session, &ip.IPReassemblyGet{IsIP6: isIP6, Type: ip.IP_REASS_TYPE_FULL})
		if err != nil {
			return err
		}
		is := now.(*ip.IPReassemblyGetReply)
		if _, err := called(ctx, session, &ip.IPReassemblySet{
			TimeoutMs: is.TimeoutMs, MaxReassemblies: is.MaxReassemblies, MaxReassemblyLength: is.MaxReassemblyLength,
			ExpireWalkIntervalMs: walkMs, IsIP6: isIP6, Type: ip.IP_REASS_TYPE_FULL,
		}); err != nil {
			return err
		}
	}
	return nil
}

// called makes VPP's refusal an error.
func called(ctx context.Context, session *vpp.Session, request api.Message) (api.Message, error) {
	reply, err := session.Call(ctx, request)
	if err != nil {
		return nil, err
	}
	return reply, api.RetvalToVPPApiError(vpp.Retval(reply))
}
