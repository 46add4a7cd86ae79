package converge

import (
	"context"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/roundtrip"
)

// MeasureRoundTrip sends small packets from the near end of the tunnel of an end that the intent holds to its far end, and
// times what comes back. Nothing in VPP is changed, and nobody is kept waiting. Error: *NotTestingError,
// *roundtrip.CannotError, ErrNoVPP or that of the connection.
func (e *Engine) MeasureRoundTrip(ctx context.Context, asked *intent.RoundTrip) (*roundtrip.Times, error) {
	end := endOf(e.heldOrEmpty(), asked.Key)
	switch {
	case end == nil:
		return nil, notTesting("the intent that is held names no VLL end %s", asked.Key)
	case end.Revision != asked.Revision:
		return nil, notTesting("VLL end %s is held at revision %d", asked.Key, end.Revision)
	case !end.Tunnel.Local.IsValid():
		return nil, notTesting("VLL end %s has no tunnel", asked.Key)
	}
	state, err := e.ObservedState(ctx)
	if err != nil {
		return nil, err
	}
	near := state.Snapshot.ByAddress(end.Tunnel.Table, end.Tunnel.Local)
	if near == nil {
		return nil, notTesting("%s, where the tunnel begins, is no address of this router", end.Tunnel.Local)
	}
	times, err := roundtrip.Measure(ctx, e.CLISocket, roundtrip.Way{From: near.Name, To: end.Tunnel.Remote})
	if err != nil {
		return nil, err
	}
	return &times, nil
}
