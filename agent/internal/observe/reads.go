package observe

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

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
	vpp.Reader
	Info() vpp.Info
	Calls(ctx context.Context, reqs []api.Message) ([]api.Message, error)
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

// Quick reads only those properties of known objects that other clients can change:
//   - of all interfaces: admin state, link state, MTUs, tag and tag rewrite;
//   - addresses, bridges and cross-connects;
//   - on which interfaces a policer works.
//
// Quick takes tunnels and Linux CP pairs from old, because they do not change while their interface exists.
//
// Quick reads all properties of the touched interfaces, and of the interfaces that have been created, deleted
// or replaced since old was read. If there are more than fewChanged such interfaces, ok is false, because
// Full is then cheaper.
//
// Quick is for frequent use, because VPP stops its workers only for these messages of Quick:
//   - l2_xconnect_dump;
//   - sw_interface_get_table of interfaces with host addresses;
//   - messages about policers, if there are any policers;
//   - before VPP 25.02, ip_address_dump.
//
// Full also makes VPP stop its workers for every kind of tunnel. The more tunnels there are, the longer VPP
// stops its workers (docs/routers/how-the-agent-reads-vpp.md).
func Quick(ctx context.Context, session Session, old *Snapshot, touched map[uint32]bool) (s *Snapshot, ok bool, err error) {
	s = old.successor()
	read := old.addressed(old.Interfaces)
	err = inOrder(
		step{"quick observation", func() error { return dumpInterfaces(ctx, session, s.add) }},
		step{"quick observation", func() error { return session.Dump(ctx, append(connectionDumps(), addressDumps(read)...), s.add) }},
	)
	if err != nil {
		return nil, false, err
	}
	changed := changedInterfaces(old, s, touched)
	if len(changed) > fewChanged {
		return nil, false, nil
	}
	err = inOrder(
		step{"quick observation of changed interfaces", func() error { return s.readChanged(ctx, session, old, changed) }},
		step{"quick observation of Linux CP pairs", func() error { return s.readChangedLCP(ctx, session, changed) }},
		step{"quick observation of bonds", func() error { return s.Index().takeBonds(ctx, session) }},
		step{"quick observation of addresses", func() error { return session.Dump(ctx, addressDumps(s.addressedAndNotRead(changed, read)), s.add) }},
		step{"quick observation of tables", func() error { return s.takeIPTables(ctx, session, old) }},
		step{"quick observation of policers", func() error { return s.readPolicersQuickly(ctx, session, old, changed) }},
	)
	if err != nil {
		return nil, false, err
	}
	return s.takeAddresses(), true, nil
}

// fewChanged is the largest number of changed interfaces that are read one by one.
const fewChanged = 200

// readChanged reads the tunnels of the changed interfaces. It takes all other tunnels from old.
func (s *Snapshot) readChanged(ctx context.Context, session Session, old *Snapshot, changed map[uint32]bool) error {
	for _, t := range old.Tunnels {
		if !changed[t.Index] {
			s.Tunnels = append(s.Tunnels, t)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	for index := range changed {
		s.forgetPolicing(index)
	}
	var dumps []api.Message
	for _, i := range s.Interfaces {
		if changed[i.Index] && !i.IsSub() {
			dumps = append(dumps, tunnel.Dumps(session.Has, interface_types.InterfaceIndex(i.Index))...)
		}
	}
	return session.Dump(ctx, dumps, s.add)
}

// readChangedLCP reads the Linux CP pairs, which appear and disappear with an interface.
func (s *Snapshot) readChangedLCP(ctx context.Context, session Session, changed map[uint32]bool) error {
	if len(changed) == 0 {
		return nil
	}
	s.LCP = make(map[uint32]string)
	return s.takeLCP(ctx, session)
}

// addressedAndNotRead returns the changed interfaces that may have addresses and are not in read. The
// interfaces that have not changed and may have addresses are already in read.
func (s *Snapshot) addressedAndNotRead(changed map[uint32]bool, read []*Interface) []*Interface {
	var unread []*Interface
	for index := range changed {
		if i := s.ByIndex(index); i != nil && !slices.ContainsFunc(read, func(a *Interface) bool { return a.Index == index }) {
			unread = append(unread, i)
		}
	}
	return s.addressed(unread)
}

// changedInterfaces returns the indices of the touched interfaces, and of the interfaces that have been
// created, deleted or replaced between old and now. An interface may have been replaced without a change of
// its index and name, because VPP reuses both.
func changedInterfaces(old, now *Snapshot, touched map[uint32]bool) map[uint32]bool {
	changed, exists := make(map[uint32]bool, len(touched)), make(map[uint32]bool, len(now.Interfaces))
	maps.Copy(changed, touched)
	for _, i := range now.Interfaces {
		exists[i.Index] = true
		if was := old.ByIndex(i.Index); was == nil || !i.Same(was) {
			changed[i.Index] = true
		}
	}
	for _, i := range old.Interfaces {
		if !exists[i.Index] {
			changed[i.Index] = true
		}
	}
	return changed
}

// readPolicersQuickly reads the policers and the classify tables. It queries only interfaces on which a
// policer works or may work, interfaces with a bound classify table of the agent, and changed interfaces.
func (s *Snapshot) readPolicersQuickly(ctx context.Context, session Session, old *Snapshot, changed map[uint32]bool) error {
	if s.Classifiers = old.Classifiers; len(old.Policers) == 0 && len(changed) == 0 {
		return nil
	}
	var policed []*Interface
	for _, i := range s.Interfaces {
		if old.Policed[i.Index] || old.PolicedUnknown[i.Index] || changed[i.Index] {
			policed = append(policed, i)
		}
	}
	if err := s.takeKnownPolicers(ctx, session, old.Policers, s.usedByLines(policed, nil)); err != nil {
		return err
	}
	return s.takeClassifiers(ctx, session, nil, s.Interfaces)
}

// Partial reads the touched interfaces again. It also reads all cross-connects, bridges and policers, because
// VPP lists these only as a whole. It takes the rest of the snapshot from old. This is enough to verify
// changes of a few lines on a router with thousands of lines.
func Partial(ctx context.Context, session Session, old *Snapshot, touched map[uint32]bool) (*Snapshot, error) {
	s := old.successor()
	s.Uses = old.Uses
	for _, i := range old.Interfaces {
		if !touched[i.Index] {
			s.Interfaces = append(s.Interfaces, i)
		} else {
			s.forgetPolicing(i.Index)
		}
	}
	for _, t := range old.Tunnels {
		if !touched[t.Index] {
			s.Tunnels = append(s.Tunnels, t)
		}
	}
	kept := len(s.Interfaces)
	var again []*Interface
	err := inOrder(
		step{"read back", func() error {
			err := session.Dump(ctx, dumpsOf(session.Has, touched), s.add)
			again = slices.Clone(s.Interfaces[kept:]) // Index sorts the interfaces
			return err
		}},
		step{"read back bonds", func() error { return s.Index().takeBonds(ctx, session) }},
		step{"read back addresses", func() error { return session.Dump(ctx, addressDumps(s.addressed(again)), s.add) }},
		step{"read back tables", func() error { return s.takeIPTables(ctx, session, old) }},
		step{"read back policers", func() error { return s.takePolicers(ctx, session, old.Policers, s.usedByLines(again, nil)) }},
		step{"read back classifiers", func() error { return s.takeClassifiers(ctx, session, old.Tables, again) }},
	)
	if err != nil {
		return nil, err
	}
	return s.takeAddresses(), nil
}

// Changed does the same as Partial, but the interfaces may have been created, deleted or replaced since old
// was read. It also reads the Linux CP pairs again, because a pair can appear and disappear together with its
// interface.
func Changed(ctx context.Context, session Session, old *Snapshot, changed map[uint32]bool) (*Snapshot, error) {
	s, err := Partial(ctx, session, old, changed)
	if err != nil {
		return nil, err
	}
	s.LCP = make(map[uint32]string, len(old.LCP))
	if err := s.takeLCP(ctx, session); err != nil {
		return nil, fmt.Errorf("observe Linux CP pairs: %w", err)
	}
	return s, nil
}

// successor returns a snapshot without interfaces and tunnels, with the rest of s that an observation does not read
// as a whole.
func (s *Snapshot) successor() *Snapshot {
	return &Snapshot{
		Boot: s.Boot, Connects: make(map[uint32]uint32, len(s.Connects)), Bridged: make(map[uint32]uint32), LCP: s.LCP,
		Supported: s.Supported, Policing: s.Policing, Policers: make(map[string]*Policer), Policed: maps.Clone(s.Policed),
		PolicedUnknown: maps.Clone(s.PolicedUnknown), Classified: maps.Clone(s.Classified), ClassifiedUnknown: maps.Clone(s.ClassifiedUnknown),
		prefixes: make(map[uint32][]netip.Prefix),
	}
}

// forgetPolicing removes what is known about the policing of an interface.
func (s *Snapshot) forgetPolicing(index uint32) {
	for _, known := range []map[uint32]bool{s.Policed, s.PolicedUnknown, s.Classified, s.ClassifiedUnknown} {
		delete(known, index)
	}
}

func dumpsOf(has tunnel.Has, touched map[uint32]bool) []api.Message {
	dumps := connectionDumps()
	for index := range touched {
		at := interface_types.InterfaceIndex(index)
		dumps = append(dumps, &interfaces.SwInterfaceDump{SwIfIndex: at})
		dumps = append(dumps, tunnel.Dumps(has, at)...)
	}
	return dumps
}
