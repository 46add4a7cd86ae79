package observe

import (
	"context"
	"fmt"
	"net/netip"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/lcp"

	"longline.dev/agent/internal/activationtest"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/pathwatch"
	"longline.dev/agent/internal/tunnel"
	"longline.dev/agent/internal/vpp"
)

// Session has the methods of a connection to VPP that observation needs.
type Session interface {
	Info() vpp.Info
	Has(api.Message) bool
	Calls(ctx context.Context, reqs []api.Message) ([]api.Message, error)
	Call(ctx context.Context, req api.Message) (api.Message, error)
	Dump(ctx context.Context, reqs []api.Message, each func(api.Message)) error
	DumpEach(ctx context.Context, reqs []api.Message, each func(request int, answer api.Message)) error
}

var _ Session = (*vpp.Session)(nil)

const anyInterface = interface_types.InterfaceIndex(NoIndex)

// Full returns a complete snapshot. It does not request the addresses of the agent's sub-interfaces and
// tunnels, because these interfaces have no addresses. So a thousand VLLs need no additional requests for
// addresses.
//
// boot identifies the VPP process of the session. Session.Dump ensures that the whole snapshot comes from
// this process. claimed has the names of ports that the agent uses although the ports do not have its tag.
func Full(ctx context.Context, session Session, boot ownership.Boot, claimed ...string) (*Snapshot, error) {
	s := &Snapshot{
		Boot: boot, Connects: make(map[uint32]uint32), Bridged: make(map[uint32]uint32), LCP: make(map[uint32]string),
		Supported: capabilities(session), prefixes: make(map[uint32][]netip.Prefix),
		Policing: policingOf(session), Policers: make(map[string]*Policer), Policed: make(map[uint32]bool), PolicedUnknown: make(map[uint32]bool),
		Classified: make(map[uint32]bool), ClassifiedUnknown: make(map[uint32]bool),
	}
	err := inOrder(
		step{"observe", func() error { return dumpInterfaces(ctx, session, s.add) }},
		step{"observe cross-connects and bridges", func() error { return session.Dump(ctx, connectionDumps(), s.add) }},
		step{"observe tunnels", func() error { return s.dumpTunnels(ctx, session) }},
		step{"observe Linux CP pairs", func() error { return s.takeLCP(ctx, session) }},
		step{"observe bonds", func() error { return s.Index().takeBonds(ctx, session) }},
		step{"observe addresses", func() error { return session.Dump(ctx, addressDumps(s.addressed(s.Interfaces)), s.add) }},
		step{"observe tables", func() error { return s.takeIPTables(ctx, session, nil) }},
		step{"observe policers", func() error { return s.takePolicers(ctx, session, nil, s.usedByLines(s.Interfaces, claimed)) }},
		step{"observe classifiers", func() error { return s.takeClassifiers(ctx, session, nil, s.Interfaces) }},
	)
	if err != nil {
		return nil, err
	}
	return s.takeAddresses(), nil
}

// step is a part of an observation. name is the beginning of its errors.
type step struct {
	name string
	read func() error
}

// inOrder carries out the steps until one of them fails.
func inOrder(steps ...step) error {
	for _, s := range steps {
		if err := s.read(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

func capabilities(session Session) map[Capability]bool {
	can := map[Capability]bool{
		CanGREKeys:              tunnel.GREKeys(session.Has),
		CanTest:                 activationtest.Missing(session.Has) == "",
		CanWatch:                pathwatch.Supported(session.Has),
		CanPoliceHostInterfaces: atLeast(session.Info().Version, 24, 6),
	}
	for _, kind := range tunnel.Kinds {
		can[Capability(kind.Encapsulation)] = vpp.Missing(session.Has, kind.Needs...) == ""
	}
	return can
}

// connectionDumps returns the requests for the cross-connects and the bridges, which VPP lists only as a
// whole.
func connectionDumps() []api.Message {
	return []api.Message{&l2.L2XconnectDump{}, &l2.BridgeDomainDump{BdID: NoIndex, SwIfIndex: anyInterface}}
}

// addressed returns the interfaces that may have addresses: all interfaces that the agent did not create. It
// includes ports with the agent's tag, because an operator may have added addresses to them. The snapshot
// must be indexed.
func (s *Snapshot) addressed(of []*Interface) (found []*Interface) {
	for _, i := range of {
		if _, ours := ownership.ParseTag(i.Tag); !ours || !i.IsSub() && s.TunnelAt(i.Index) == nil {
			found = append(found, i)
		}
	}
	return found
}

func addressDumps(of []*Interface) (dumps []api.Message) {
	for _, i := range of {
		for _, six := range []bool{false, true} {
			dumps = append(dumps, &ip.IPAddressDump{SwIfIndex: interface_types.InterfaceIndex(i.Index), IsIPv6: six})
		}
	}
	return dumps
}

// retryLater is VNET_API_ERROR_EAGAIN. It means that the list does not fit into one reply, and that the next
// request has to continue at the cursor.
const retryLater = -165

func (s *Snapshot) takeLCP(ctx context.Context, session Session) error {
	if !session.Has(&lcp.LcpItfPairGet{}) {
		return nil // the plugin is disabled by default
	}
	for cursor := uint32(0); ; {
		again := false
		err := session.Dump(ctx, []api.Message{&lcp.LcpItfPairGet{Cursor: cursor}}, func(msg api.Message) {
			switch m := msg.(type) {
			case *lcp.LcpItfPairDetails:
				s.LCP[uint32(m.PhySwIfIndex)] = vpp.Text(m.HostIfName)
				s.LCP[uint32(m.HostSwIfIndex)] = vpp.Text(m.HostIfName)
			case *lcp.LcpItfPairGetReply:
				again, cursor = m.Retval == retryLater, m.Cursor
			}
		})
		if err != nil || !again {
			return err
		}
	}
}

func (s *Snapshot) add(msg api.Message) {
	switch m := msg.(type) {
	case *interfaces.SwInterfaceDetails:
		if activationtest.IsGenerator(m) {
			return
		}
		s.Interfaces = append(s.Interfaces, interfaceOf(m))
	case *l2.L2XconnectDetails:
		s.Connects[uint32(m.RxSwIfIndex)] = uint32(m.TxSwIfIndex)
	case *l2.BridgeDomainDetails:
		for _, member := range m.SwIfDetails {
			s.Bridged[uint32(member.SwIfIndex)] = m.BdID
		}
	case *ip.IPAddressDetails:
		s.prefixes[uint32(m.SwIfIndex)] = append(s.prefixes[uint32(m.SwIfIndex)], netip.PrefixFrom(vpp.NetipAddr(m.Prefix.Address), int(m.Prefix.Len)))
	default:
		if t := tunnel.FoundIn(msg); t != nil {
			s.Tunnels = append(s.Tunnels, t)
		}
	}
}
