// Package pathwatch makes VPP monitor the paths between tunnel endpoints with multihop BFD (RFC 5880, RFC
// 5883). Each path has one session, regardless of the number of lines on it.
package pathwatch

import (
	"context"
	"fmt"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/bfd"
	"go.fd.io/govpp/binapi/interface_types"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/vpp"
)

// multihop is the interface index of multihop sessions. It is VPP's index for "no interface", because only
// single-hop sessions have an interface.
const multihop = ^interface_types.InterfaceIndex(0)

// Caller has the methods of a connection to VPP that monitoring needs.
type Caller interface {
	Has(api.Message) bool
	Call(ctx context.Context, req api.Message) (api.Message, error)
	Calls(ctx context.Context, reqs []api.Message) ([]api.Message, error)
	Dump(ctx context.Context, reqs []api.Message, each func(api.Message)) error
}

// Supported reports whether this VPP has multihop BFD with all messages that the agent needs (VPP 25.02 and
// later).
func Supported(has func(api.Message) bool) bool {
	return vpp.Missing(has, &bfd.BfdUDPEnableMultihop{}, &bfd.WantBfdEvents{}, &bfd.BfdUDPAdd{}, &bfd.BfdUDPMod{}, &bfd.BfdUDPDel{},
		&bfd.BfdUDPSessionDump{}, &bfd.BfdUDPSessionSetFlags{}) == ""
}

// Session is a multihop session as VPP reports it.
type Session struct {
	State      bfd.BfdState
	Interval   [2]uint32 // desired transmit and required receive interval, microseconds
	Multiplier uint8
	Secured    bool // authenticated with a key (RFC 5880, 6.7)
}

// matches reports whether the session has the settings of the intent.
func (s Session) matches(w intent.Watch) bool {
	us := interval(w)
	return s.Interval == [2]uint32{us, us} && s.Multiplier == uint8(w.Multiplier) && !s.Secured
}

// interval returns the interval in microseconds, the unit of VPP.
func interval(w intent.Watch) uint32 {
	return uint32((time.Duration(w.IntervalMS) * time.Millisecond).Microseconds())
}

// Read returns all multihop sessions of VPP, including the sessions of other clients.
func Read(ctx context.Context, session Caller) (map[intent.Path]Session, error) {
	found := make(map[intent.Path]Session)
	err := session.Dump(ctx, []api.Message{&bfd.BfdUDPSessionDump{}}, func(msg api.Message) {
		if m, is := msg.(*bfd.BfdUDPSessionDetails); is && m.SwIfIndex == multihop {
			path := intent.Path{Local: vpp.NetipAddr(m.LocalAddr), Remote: vpp.NetipAddr(m.PeerAddr)}
			found[path] = Session{m.State, [2]uint32{m.DesiredMinTx, m.RequiredMinRx}, m.DetectMult, m.IsAuthenticated}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read BFD sessions: %w", err)
	}
	return found, nil
}

// EventOf returns the path and the state of an event. ok is false for single-hop sessions.
func EventOf(m *bfd.BfdUDPSessionEvent) (path intent.Path, state bfd.BfdState, ok bool) {
	return intent.Path{Local: vpp.NetipAddr(m.LocalAddr), Remote: vpp.NetipAddr(m.PeerAddr)}, m.State, m.SwIfIndex == multihop
}

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
