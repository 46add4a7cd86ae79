package vppsim

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"go.fd.io/govpp/binapi/bfd"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
)

func bfdOperations() []operation {
	return []operation{
		on((*vpp).bfdEnableMultihop, &bfd.BfdUDPEnableMultihopReply{}),
		on((*vpp).bfdAdd, &bfd.BfdUDPAddReply{}),
		on((*vpp).bfdMod, &bfd.BfdUDPModReply{}),
		on((*vpp).bfdDel, &bfd.BfdUDPDelReply{}),
		on((*vpp).bfdDump, &bfd.BfdUDPSessionDetails{}),
		on((*vpp).bfdSetFlags, &bfd.BfdUDPSessionSetFlagsReply{}),
		on((*vpp).wantBFDEvents, &bfd.WantBfdEventsReply{}, &bfd.BfdUDPSessionEvent{}),
	}
}

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

func (v *vpp) bfdEnableMultihop(c *call, _ *bfd.BfdUDPEnableMultihop) {
	v.bfd.multihop = true
	c.reply(&bfd.BfdUDPEnableMultihopReply{})
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

// existingBFD does the same as bfdAt, but returns an error code if the session does not exist.
func (v *vpp) existingBFD(index interface_types.InterfaceIndex, local, peer ip_types.Address) (*bfdSession, int32) {
	_, session, retval := v.bfdAt(index, local, peer)
	if retval == 0 && session == nil {
		retval = retvalBFDNoSuchEntry
	}
	return session, retval
}

func (v *vpp) bfdAdd(c *call, m *bfd.BfdUDPAdd) {
	reply := &bfd.BfdUDPAddReply{}
	defer c.reply(reply)
	key, session, retval := v.bfdAt(m.SwIfIndex, m.LocalAddr, m.PeerAddr)
	switch {
	case retval != 0:
		reply.Retval = retval
	case m.DetectMult < 1 || m.DesiredMinTx < 1:
		reply.Retval = retvalInvalidArgument
	case session != nil:
		reply.Retval = retvalBFDExists
	case m.IsAuthenticated: // authentication is refused, because the stand-in has no keys
		reply.Retval = retvalBFDNoSuchEntry
	default:
		v.bfd.byKey[key] = &bfdSession{ // VPP sends no event about a new session
			bfdKey: key, interval: [2]uint32{m.DesiredMinTx, m.RequiredMinRx}, multiplier: m.DetectMult, state: bfd.BFD_STATE_API_DOWN,
		}
	}
}

func (v *vpp) bfdMod(c *call, m *bfd.BfdUDPMod) {
	reply := &bfd.BfdUDPModReply{}
	defer c.reply(reply)
	session, retval := v.existingBFD(m.SwIfIndex, m.LocalAddr, m.PeerAddr)
	switch {
	case retval != 0:
		reply.Retval = retval
	default: // all values are accepted: VPP checks them only for new sessions
		session.interval, session.multiplier = [2]uint32{m.DesiredMinTx, m.RequiredMinRx}, m.DetectMult
	}
}

func (v *vpp) bfdDel(c *call, m *bfd.BfdUDPDel) {
	reply := &bfd.BfdUDPDelReply{}
	defer c.reply(reply)
	session, retval := v.existingBFD(m.SwIfIndex, m.LocalAddr, m.PeerAddr)
	switch {
	case retval != 0:
		reply.Retval = retval
	default:
		v.bfdSilence(session)
		delete(v.bfd.byKey, session.bfdKey)
	}
}

func (v *vpp) bfdSetFlags(c *call, m *bfd.BfdUDPSessionSetFlags) {
	reply := &bfd.BfdUDPSessionSetFlagsReply{}
	defer c.reply(reply)
	session, retval := v.existingBFD(m.SwIfIndex, m.LocalAddr, m.PeerAddr)
	switch {
	case retval != 0:
		reply.Retval = retval
	case m.Flags&interface_types.IF_STATUS_API_FLAG_ADMIN_UP == 0:
		session.shut = true
		v.bfdSilence(session)
		v.bfdTurn(session, bfd.BFD_STATE_API_ADMIN_DOWN)
	case session.shut:
		session.shut = false
		v.bfdTurn(session, bfd.BFD_STATE_API_DOWN)
	}
}

func (v *vpp) bfdDump(c *call, _ *bfd.BfdUDPSessionDump) {
	for _, s := range v.bfd.sorted() {
		c.reply(&bfd.BfdUDPSessionDetails{
			SwIfIndex: s.index, LocalAddr: vppAddress(s.local), PeerAddr: vppAddress(s.peer), State: s.state,
			DesiredMinTx: s.interval[0], RequiredMinRx: s.interval[1], DetectMult: s.multiplier,
		})
	}
}

func (b *bfdSessions) sorted() (all []*bfdSession) {
	for _, s := range b.byKey {
		all = append(all, s)
	}
	slices.SortFunc(all, func(x, y *bfdSession) int {
		return cmp.Or(cmp.Compare(x.index, y.index), x.local.Compare(y.local), x.peer.Compare(y.peer))
	})
	return all
}

func (v *vpp) wantBFDEvents(c *call, m *bfd.WantBfdEvents) {
	reply := &bfd.WantBfdEventsReply{}
	if m.EnableDisable == v.bfd.watchers[c.client] {
		reply.Retval = retvalInvalidRegistration
	}
	v.bfd.watchers[c.client] = m.EnableDisable
	c.reply(reply)
}

func (v *vpp) bfdTurn(s *bfdSession, state bfd.BfdState) {
	if s.state == state {
		return
	}
	s.state = state
	v.bfdNotify(s)
}

// bfdNotify sends events to clients. As in VPP, the events do not contain the process ID with which the
// client registered.
func (v *vpp) bfdNotify(s *bfdSession) {
	for c, watching := range v.bfd.watchers {
		if !watching {
			continue
		}
		c.send(&bfd.BfdUDPSessionEvent{
			SwIfIndex: s.index, LocalAddr: vppAddress(s.local), PeerAddr: vppAddress(s.peer), State: s.state,
			DesiredMinTx: s.interval[0], RequiredMinRx: s.interval[1], DetectMult: s.multiplier,
		}, c.index)
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
			os.Remove(v.bfdSocket(s.local, s.peer).Name) // removes the socket of a process that was killed
			s.socket, _ = net.ListenUnixgram("unixgram", v.bfdSocket(s.local, s.peer))
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

// bfdSocket returns the address of a socket. The socket exists while the session from local to peer
// sends.
func (v *vpp) bfdSocket(local, peer netip.Addr) *net.UnixAddr {
	return &net.UnixAddr{Net: "unixgram", Name: fmt.Sprintf("/proc/self/fd/%d/bfd-%s-%s", v.underlay.folder.Fd(), local, peer)}
}

func (v *vpp) bfdReceives(s *bfdSession) bool {
	socket, err := net.DialUnix("unixgram", nil, v.bfdSocket(s.peer, s.local))
	if err != nil {
		return false
	}
	socket.Close()
	return true
}

func (v *vpp) bfdSilence(s *bfdSession) {
	if s.socket == nil {
		return
	}
	os.Remove(v.bfdSocket(s.local, s.peer).Name)
	s.socket.Close()
	s.socket = nil
}
