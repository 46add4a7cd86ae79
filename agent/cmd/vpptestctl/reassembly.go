package main

import (
	"context"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip"

	"longline.dev/agent/internal/vpp"
)

// walkMs is the interval (ms) between VPP's searches for packets whose fragments have not all arrived in
// time. By default, VPP searches 20 times a second for each address family, and busy-waits for the last
// millisecond before each search.
const walkMs = 1000

// walkSlowly sets the interval to walkMs. It does not change the reassembly timeout and the maximum
// number of concurrent reassemblies.
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

// called sends a request and returns the reply. If VPP refuses the request, it returns an error.
func called(ctx context.Context, session *vpp.Session, request api.Message) (api.Message, error) {
	reply, err := session.Call(ctx, request)
	if err != nil {
		return nil, err
	}
	return reply, api.RetvalToVPPApiError(vpp.Retval(reply))
}
