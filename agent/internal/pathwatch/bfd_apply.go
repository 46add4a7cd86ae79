package pathwatch

import (
	"context"
	"fmt"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/bfd"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/vpp"
)

// Refused maps each path whose session could not be created or changed to the reason: VPP's error text, or
// the reason of Misrouted.
type Refused map[intent.Path]string

// Run sends the operations in order, and returns the paths for which VPP refused an operation.
func Run(ctx context.Context, session Caller, ops []Op) (Refused, error) {
	var requests []api.Message
	for _, op := range ops {
		if _, is := op.Request.(*bfd.BfdUDPAdd); is {
			requests = append(requests, &bfd.BfdUDPEnableMultihop{}) // VPP ignores the request if multihop is enabled already
			break
		}
	}
	ahead := len(requests)
	for _, op := range ops {
		requests = append(requests, op.Request)
	}
	replies, err := session.Calls(ctx, requests)
	if err != nil {
		return nil, fmt.Errorf("change BFD sessions: %w", err)
	}
	refused := make(Refused)
	for i, reply := range replies[ahead:] {
		if retval := vpp.Retval(reply); retval != 0 {
			refused[ops[i].Path] = fmt.Sprintf("%s: %v", ops[i].Request.GetMessageName(), api.RetvalToVPPApiError(retval))
		}
	}
	return refused, nil
}
