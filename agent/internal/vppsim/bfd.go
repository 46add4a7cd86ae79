package vppsim

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"time"

	"go.fd.io/govpp/binapi/bfd"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
)

// bfdEvery is the pause between two checks. A check finds out whether BFD sessions and their peers can reach
// each other.
const bfdEvery = 100 * time.Millisecond

// bfdSessions contains all BFD sessions. A session on an interface (without multihop) stays down, because
// no neighbour of the stand-in has a peer for it.
type bfdSessions struct {
	multihop bool // multihop sessions are enabled
	byKey    map[bfdKey]*bfdSession
	watchers map[*client]bool // the clients that registered with want_bfd_events
}

type bfdKey struct {
	index       interface_types.InterfaceIndex // everyIndex for a multihop session
	local, peer netip.Addr
}

// bfdSession is a BFD session. It is up while both this session and its peer send. A session sends as
// long as its socket exists in the underlay. The stand-ins exchange no BFD packets, so that delays on a busy
// machine cannot take a path down.
type bfdSession struct {
	bfdKey
	interval   [2]uint32 // microseconds: desired interval to send, required interval to receive
	multiplier uint8
	state      bfd.BfdState
	shut       bool
	receivedAt time.Time
	socket     *net.UnixConn // nil if the session does not send, or if its packets would not arrive
}

func (v *vpp) bfdEnableMultihop(*bfd.BfdUDPEnableMultihop) int32 {
	v.bfd.multihop = true
	return 0
}

// bfdAt finds a session by the fields with which messages identify it. The session is nil if it does not
// exist.
func (v *vpp) bfdAt(index interface_types.InterfaceIndex, local, peer ip_types.Address) (bfdKey, *bfdSession, int32) {
	key := bfdKey{index, netipAddr(local), netipAddr(peer)}
	switch {
	case index != everyIndex && v.at(index) == nil, index == everyIndex && !v.bfd.multihop:
		return key, nil, retvalInvalidInterface
	case key.local.Is4() != key.peer.Is4():
		return key, nil, retvalInvalidArgument
	}
	return key, v.bfd.byKey[key], 0
}

// existingBFD returns an error code if the session does not exist.
func (v *vpp) existingBFD(index interface_types.InterfaceIndex, local, peer ip_types.Address) (*bfdSession, int32) {
	_, session, retval := v.bfdAt(index, local, peer)
	if retval == 0 && session == nil {
		retval = retvalBFDNoSuchEntry
	}
	return session, retval
}

func (v *vpp) bfdAdd(m *bfd.BfdUDPAdd) int32 {
	key, session, retval := v.bfdAt(m.SwIfIndex, m.LocalAddr, m.PeerAddr)
	switch {
	case retval != 0:
		return retval
	case m.DetectMult < 1 || m.DesiredMinTx < 1:
		return retvalInvalidArgument
	case session != nil:
		return retvalBFDExists
	case m.IsAuthenticated: // authentication is refused, because the stand-in has no keys
		return retvalBFDNoSuchEntry
	}
	v.bfd.byKey[key] = &bfdSession{ // VPP sends no event about a new session
		bfdKey: key, interval: [2]uint32{m.DesiredMinTx, m.RequiredMinRx}, multiplier: m.DetectMult, state: bfd.BFD_STATE_API_DOWN,
	}
	return 0
}

// bfdMod accepts all values: VPP checks them only for new sessions.
func (v *vpp) bfdMod(m *bfd.BfdUDPMod) int32 {
	session, retval := v.existingBFD(m.SwIfIndex, m.LocalAddr, m.PeerAddr)
	if retval == 0 {
		session.interval, session.multiplier = [2]uint32{m.DesiredMinTx, m.RequiredMinRx}, m.DetectMult
	}
	return retval
}

func (v *vpp) bfdDel(m *bfd.BfdUDPDel) int32 {
	session, retval := v.existingBFD(m.SwIfIndex, m.LocalAddr, m.PeerAddr)
	if retval == 0 {
		v.bfdSilence(session)
		delete(v.bfd.byKey, session.bfdKey)
	}
	return retval
}

func (v *vpp) bfdSetFlags(m *bfd.BfdUDPSessionSetFlags) int32 {
	session, retval := v.existingBFD(m.SwIfIndex, m.LocalAddr, m.PeerAddr)
	switch {
	case retval != 0:
	case m.Flags&interface_types.IF_STATUS_API_FLAG_ADMIN_UP == 0:
		session.shut = true
		v.bfdSilence(session)
		v.bfdTurn(session, bfd.BFD_STATE_API_ADMIN_DOWN)
	case session.shut:
		session.shut = false
		v.bfdTurn(session, bfd.BFD_STATE_API_DOWN)
	}
	return retval
}

func (v *vpp) bfdDump(_ *bfd.BfdUDPSessionDump, send func(*bfd.BfdUDPSessionDetails)) {
	for _, s := range v.bfd.sorted() {
		send(&bfd.BfdUDPSessionDetails{
			SwIfIndex: s.index, LocalAddr: vppAddress(s.local), PeerAddr: vppAddress(s.peer), State: s.state,
			DesiredMinTx: s.interval[0], RequiredMinRx: s.interval[1], DetectMult: s.multiplier,
		})
	}
}

func (b *bfdSessions) sorted() []*bfdSession {
	return slices.SortedFunc(maps.Values(b.byKey), func(x, y *bfdSession) int {
		return cmp.Or(cmp.Compare(x.index, y.index), x.local.Compare(y.local), x.peer.Compare(y.peer))
	})
}

func (v *vpp) wantBFDEvents(c *call, m *bfd.WantBfdEvents) {
	reply := &bfd.WantBfdEventsReply{}
	if m.EnableDisable == v.bfd.watchers[c.client] {
		reply.Retval = retvalInvalidRegistration
	}
	v.bfd.watchers[c.client] = m.EnableDisable
	c.reply(reply)
}

// bfdTurn changes the state of a session and sends events to clients. As in VPP, the events do not contain the
// process ID with which the client registered.
func (v *vpp) bfdTurn(s *bfdSession, state bfd.BfdState) {
	if s.state == state {
		return
	}
	s.state = state
	for c, watching := range v.bfd.watchers {
		if watching {
			c.send(&bfd.BfdUDPSessionEvent{
				SwIfIndex: s.index, LocalAddr: vppAddress(s.local), PeerAddr: vppAddress(s.peer), State: s.state,
				DesiredMinTx: s.interval[0], RequiredMinRx: s.interval[1], DetectMult: s.multiplier,
			}, c.index)
		}
	}
}

// bfdTick updates the socket and the state of each session. A session goes up as soon as both directions
// work. It goes down when at least one direction has not worked for the detection time (RFC 5880, 6.8.4).
func (v *vpp) bfdTick(now time.Time) {
	if v.underlay.folder == nil || len(v.bfd.byKey) == 0 {
		return
	}
	fib, links := v.fib(), v.links()
	for _, s := range v.bfd.sorted() {
		if s.index != everyIndex {
			continue
		}
		// VPP sends packets by the routes of table 0. It accepts received packets in any table.
		speaks := !s.shut && !links.Down && v.upWith(s.local) != nil && fib.follow(0, s.peer).path != fib_types.FIB_API_PATH_TYPE_DROP
		if !speaks {
			v.bfdSilence(s)
		} else if s.socket == nil {
			s.socket, _ = v.underlay.listen(bfdSocket(s.local, s.peer))
		}
		switch {
		case s.shut:
		case s.socket != nil && v.bfdReceives(s):
			s.receivedAt = now
			v.bfdTurn(s, bfd.BFD_STATE_API_UP)
		case now.Sub(s.receivedAt) >= time.Duration(s.multiplier)*time.Duration(max(s.interval[0], s.interval[1]))*time.Microsecond:
			v.bfdTurn(s, bfd.BFD_STATE_API_DOWN)
		}
	}
}

// bfdSocket returns the name of a socket. The socket exists while the session from local to peer sends.
func bfdSocket(local, peer netip.Addr) string { return fmt.Sprintf("bfd-%s-%s", local, peer) }

func (v *vpp) bfdReceives(s *bfdSession) bool {
	socket, err := net.DialUnix("unixgram", nil, v.underlay.socket(bfdSocket(s.peer, s.local)))
	if err != nil {
		return false
	}
	socket.Close()
	return true
}

func (v *vpp) bfdSilence(s *bfdSession) {
	if s.socket != nil {
		leave(s.socket)
		s.socket = nil
	}
}
