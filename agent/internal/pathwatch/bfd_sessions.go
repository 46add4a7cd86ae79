// Package pathwatch has VPP watch the paths between tunnel endpoints by multihop BFD (RFC 5880, RFC 5883): one session for
// each path, whatever the number of lines that take it.
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

// multihop is VPP's "no interface": sessions of one hop are bound to one.
const multihop = ^interface_types.InterfaceIndex(0)

// Caller is what watching needs of a connection to VPP.
type Caller interface {
	Has(api.Message) bool
	Call(ctx context.Context, req api.Message) (api.Message, error)
	Calls(ctx context.Context, reqs []api.Message) ([]api.Message, error)
	Dump(ctx context.Context, reqs []api.Message, each func(api.Message)) error
}

// Supported reports whether this VPP has multihop BFD, and all that the agent needs of it: since 25.02.
func Supported(has func(api.Message) bool) bool {
	for _, m := range []api.Message{
		&bfd.BfdUDPEnableMultihop{}, &bfd.WantBfdEvents{}, &bfd.BfdUDPAdd{}, &bfd.BfdUDPMod{}, &bfd.BfdUDPDel{},
		&bfd.BfdUDPSessionDump{}, &bfd.BfdUDPSessionSetFlags{},
	} {
		if !has(m) {
			return false
		}
	}
	return true
}

// Session is a multihop session as VPP shows it.
type Session struct {
	State      bfd.BfdState
	Interval   [2]uint32 // desired to send and required to receive, microseconds
	Multiplier uint8
	Secured    bool // with a key of RFC 5880, 6.7
}

// as is a session that is watched as the intent says.
func (s Session) as(w intent.Watch) bool {
	us := interval(w)
	return s.Interval == [2]uint32{us, us} && s.Multiplier == uint8(w.Multiplier) && !s.Secured
}

// interval is in microseconds, as VPP counts.
func interval(w intent.Watch) uint32 {
	return uint32((time.Duration(w.IntervalMS) * time.Millisecond).Microseconds())
}

// Read reads all multihop sessions of VPP, whoever made them.
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

// EventOf is what an event says; ok is false for sessions of one hop.
func EventOf(m *bfd.BfdUDPSessionEvent) (path intent.Path, state bfd.BfdState, ok bool) {
	return intent.Path{Local: vpp.NetipAddr(m.LocalAddr), Remote: vpp.NetipAddr(m.PeerAddr)}, m.State, m.SwIfIndex == multihop
}
