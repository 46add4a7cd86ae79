package converge

import (
	"context"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/roundtrip"
)

// MeasureRoundTrip measures the round-trip time between the two endpoints of a tunnel, with small packets.
// The tunnel belongs to an end of the stored intent. It changes nothing in VPP and does not delay other work.
// It returns *NotTestingError, *roundtrip.CannotError, ErrNoVPP, ErrStopping or an error of the connection.
func (e *Engine) MeasureRoundTrip(ctx context.Context, request *intent.RoundTrip) (*roundtrip.Times, error) {
	end := endOf(e.storedOrEmpty(), request.Key)
	switch {
	case end == nil:
		return nil, notTesting("the stored intent names no VLL end %s", request.Key)
	case end.Revision != request.Revision:
		return nil, notTesting("VLL end %s is stored at revision %d", request.Key, end.Revision)
	case !end.Tunnel.Local.IsValid():
		return nil, notTesting("VLL end %s has no tunnel", request.Key)
	}
	state, err := e.ObservedState(ctx)
	if err != nil {
		return nil, err
	}
	near := state.Snapshot.ByAddress(end.Tunnel.Table, end.Tunnel.Local)
	if near == nil {
		return nil, notTesting("%s, the near endpoint of the tunnel, is not an address of this router", end.Tunnel.Local)
	}
	times, err := roundtrip.Measure(ctx, e.options.CLISocket, roundtrip.Path{From: near.Name, To: end.Tunnel.Remote})
	if err != nil {
		return nil, err
	}
	return &times, nil
}
