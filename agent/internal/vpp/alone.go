package vpp

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"go.fd.io/govpp/binapi/vlib"
)

// An agent is in VPP's list of clients as longline/<drawn at its start>/<router>, of which the list shows the
// first nameShown characters.
const (
	agentMark = "longline/"
	nameShown = 20
	fourOf36  = 36 * 36 * 36 * 36
)

// AgentName is a name for one run of the agent of a router.
func AgentName(router string) string {
	drawn := strconv.FormatUint(fourOf36+rand.Uint64N(35*fourOf36), 36) // five digits
	return fmt.Sprintf("%s%s/%.40s", agentMark, drawn, router)
}

// OtherAgentError says that another agent works with this VPP. Two with different intents would undo each
// other's work for ever.
type OtherAgentError struct{ Name string }

func (e *OtherAgentError) Error() string {
	return fmt.Sprintf("another agent works with this VPP: its API client %s; one of the two has to be stopped", e.Name)
}

// alone looks for other agents among VPP's clients. Only its CLI tells them; unlike a lock on a file this sees
// an agent in another container too. A VPP that does not tell is taken at its word.
func (s *Session) alone(ctx context.Context, name string) error {
	reply, err := s.Call(ctx, &vlib.CliInband{Cmd: "show api clients"})
	if err != nil {
		return err
	}
	shown := name[:min(len(name), nameShown)]
	for field := range strings.FieldsSeq(reply.(*vlib.CliInbandReply).Reply) {
		if strings.HasPrefix(field, agentMark) && field != shown {
			return &OtherAgentError{field}
		}
	}
	return nil
}
