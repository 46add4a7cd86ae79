package observe

import (
	"context"
	"maps"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"

	"longline.dev/agent/internal/tunnel"
)

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
