// Package pathwatch makes VPP monitor the paths between tunnel endpoints with multihop BFD (RFC 5880, RFC
// 5883). Each path has one session, regardless of the number of lines on it.
package pathwatch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/bfd"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/vpp"
)

// multihop is the interface index of multihop sessions. It is VPP's index for "no interface", because only
// single-hop sessions have an interface.
const multihop = ^interface_types.InterfaceIndex(0)

// Caller has the methods of a connection to VPP that monitoring needs.
type Caller interface {
	vpp.Reader
	Calls(ctx context.Context, reqs []api.Message) ([]api.Message, error)
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

// Wanted has the paths to monitor, with the BFD settings.
type Wanted struct {
	Paths []intent.Path // sorted
	intent.Watch
	// Tables maps a path to the table of its tunnels, if this is not table 0.
	Tables map[intent.Path]uint32
}

// Of returns the paths that an intent wants to monitor. The result is empty if the intent does not request
// monitoring.
func Of(in *intent.Intent) Wanted {
	if in.Watch == (intent.Watch{}) {
		return Wanted{}
	}
	wanted := Wanted{Paths: in.Paths(), Watch: in.Watch, Tables: make(map[intent.Path]uint32)}
	for i := range in.Present {
		if path, tunnelled := in.Present[i].Tunnel.Path(); tunnelled && in.Present[i].Tunnel.Table != 0 {
			wanted.Tables[path] = in.Present[i].Tunnel.Table
		}
	}
	return wanted
}

// Equal reports whether w and o have the same paths, settings and tables.
func (w Wanted) Equal(o Wanted) bool {
	return w.Watch == o.Watch && slices.Equal(w.Paths, o.Paths) && maps.Equal(w.Tables, o.Tables)
}

// Without returns a copy of w without these paths.
func (w Wanted) Without(paths Refused) Wanted {
	w.Paths = slices.DeleteFunc(slices.Clone(w.Paths), func(path intent.Path) bool { return paths[path] != "" })
	return w
}

// Op is one change of one session.
type Op struct {
	Path    intent.Path
	Request api.Message
}

// Plan returns the operations that turn the existing sessions into the wanted sessions, in the order of
// execution. It plans no changes of sessions of other clients.
func Plan(wanted Wanted, existing map[intent.Path]Session, ours map[intent.Path]bool) (ops []Op) {
	for _, path := range slices.SortedFunc(maps.Keys(ours), intent.Path.Compare) {
		if _, exists := existing[path]; exists && !slices.Contains(wanted.Paths, path) {
			ops = append(ops, Op{path, deletion(path)})
		}
	}
	for _, path := range wanted.Paths {
		session, exists := existing[path]
		switch {
		case !exists:
			ops = append(ops, Op{path, creation(path, wanted.Watch)})
		case !ours[path]:
		case session.Secured:
			ops = append(ops, Op{path, deletion(path)}, Op{path, creation(path, wanted.Watch)})
		case !session.matches(wanted.Watch):
			ops = append(ops, Op{path, modification(path, wanted.Watch)})
		}
		if exists && ours[path] && session.State == bfd.BFD_STATE_API_ADMIN_DOWN {
			ops = append(ops, Op{path, &bfd.BfdUDPSessionSetFlags{
				SwIfIndex: multihop, LocalAddr: vpp.IPAddress(path.Local), PeerAddr: vpp.IPAddress(path.Remote),
				Flags: interface_types.IF_STATUS_API_FLAG_ADMIN_UP,
			}})
		}
	}
	return ops
}

func creation(path intent.Path, watch intent.Watch) *bfd.BfdUDPAdd {
	return &bfd.BfdUDPAdd{
		SwIfIndex: multihop, LocalAddr: vpp.IPAddress(path.Local), PeerAddr: vpp.IPAddress(path.Remote),
		DesiredMinTx: interval(watch), RequiredMinRx: interval(watch), DetectMult: uint8(watch.Multiplier),
	}
}

func modification(path intent.Path, watch intent.Watch) *bfd.BfdUDPMod {
	return &bfd.BfdUDPMod{
		SwIfIndex: multihop, LocalAddr: vpp.IPAddress(path.Local), PeerAddr: vpp.IPAddress(path.Remote),
		DesiredMinTx: interval(watch), RequiredMinRx: interval(watch), DetectMult: uint8(watch.Multiplier),
	}
}

func deletion(path intent.Path) *bfd.BfdUDPDel {
	return &bfd.BfdUDPDel{SwIfIndex: multihop, LocalAddr: vpp.IPAddress(path.Local), PeerAddr: vpp.IPAddress(path.Remote)}
}

// VPP routes the packets of a multihop BFD session by table 0, regardless of the table of its addresses. It
// accepts received packets in every table (vnet/bfd/bfd_udp.c; observed with 25.10). So the agent monitors a
// path in another table only if a route of table 0 leads to the same next hops.
//
// In other cases the agent creates no session, because the session would show nothing about the tunnels, or
// would show the state of another network with the same addresses. If neither table has a route, the underlay
// may just have failed. In this case the agent keeps an existing session, because the session reports the
// failure.

// Misrouted returns the wanted paths whose BFD packets would take another route than the tunnels, each with
// the reason. existing has the sessions in VPP.
func Misrouted(ctx context.Context, session Caller, wanted Wanted, existing map[intent.Path]Session) (Refused, error) {
	misrouted := make(Refused)
	var paths []intent.Path
	var lookups []api.Message
	for _, path := range wanted.Paths {
		if table := wanted.Tables[path]; table != 0 {
			paths = append(paths, path)
			lookups = append(lookups, vpp.RouteLookup(0, path.Remote), vpp.RouteLookup(table, path.Remote))
		}
	}
	if len(paths) == 0 {
		return misrouted, nil
	}
	replies, err := session.Calls(ctx, lookups)
	if err != nil {
		return nil, fmt.Errorf("look up where BFD packets go: %w", err)
	}
	for n, path := range paths {
		table, packets, tunnels := wanted.Tables[path], replies[2*n].(*ip.IPRouteLookupReply), replies[2*n+1].(*ip.IPRouteLookupReply)
		if _, exists := existing[path]; exists && leadsNowhere(packets) && leadsNowhere(tunnels) {
			continue
		}
		if !sameRoute(packets, tunnels, table) {
			family := map[bool]string{true: "ip4", false: "ip6"}[path.Remote.Is4()]
			misrouted[path] = fmt.Sprintf("VPP sends BFD packets by table 0, where no route to %s leads into table %d: "+
				"ip route add %s/%d via %s-lookup-in-table %d", path.Remote, table, path.Remote, path.Remote.BitLen(), family, table)
		}
	}
	return misrouted, nil
}

// sameRoute reports whether table 0 (BFD packets) and the given table (tunnel packets) lead to the same next
// hops.
func sameRoute(packets, tunnels *ip.IPRouteLookupReply, table uint32) bool {
	if packets.Retval != 0 || tunnels.Retval != 0 || len(packets.Route.Paths) == 0 {
		return false
	}
	hops := make([]hop, 0, len(tunnels.Route.Paths))
	for _, path := range tunnels.Route.Paths {
		hops = append(hops, hopOf(path))
	}
	return !slices.ContainsFunc(packets.Route.Paths, func(path fib_types.FibPath) bool {
		at := hopOf(path)
		return at != hop{kind: fib_types.FIB_API_PATH_TYPE_NORMAL, via: ^uint32(0), table: table} && !(at.leads() && slices.Contains(hops, at))
	})
}

// leadsNowhere reports whether VPP drops packets to this destination.
func leadsNowhere(found *ip.IPRouteLookupReply) bool {
	return found.Retval == 0 && !vpp.Leads(found.Route)
}

// hop is the destination of a path of a route.
type hop struct {
	kind       fib_types.FibPathType
	via, table uint32
	next       [16]byte
}

func hopOf(path fib_types.FibPath) hop {
	at := hop{kind: path.Type, via: path.SwIfIndex, next: path.Nh.Address.XXX_UnionData}
	if at.via == ^uint32(0) {
		at.table = path.TableID
	}
	return at
}

func (h hop) leads() bool { return h.kind == fib_types.FIB_API_PATH_TYPE_NORMAL && h.via != ^uint32(0) }
