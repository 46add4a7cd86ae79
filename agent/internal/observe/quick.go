package observe

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
)

// Quick is the quick look: it reads again only what others can change of what was seen before: admin state, link, MTUs,
// tags and tag rewrites of all interfaces, addresses, bridges, cross-connects, and the policers that were at work.
// Tunnels and Linux CP pairs are as in old: neither changes while its interface stays. Of the
// touched interfaces, and of those that have come, gone or been replaced since old, it reads all. ok is false when these
// are more than fewChanged; then Full costs less.
//
// It is for looking often: of its messages VPP stops its workers for l2_xconnect_dump, for sw_interface_get_table of
// interfaces with host addresses, for those about policers where there are any, and before 25.02 for ip_address_dump. Full costs a
// stop for every kind of tunnel too, the longer the more there are (docs/routers/how-the-agent-reads-vpp.md).
func Quick(ctx context.Context, session Session, old *Snapshot, touched map[uint32]bool) (s *Snapshot, ok bool, err error) {
	s = &Snapshot{
		Boot: old.Boot, Connects: make(map[uint32]uint32, len(old.Connects)), Bridged: make(map[uint32]uint32),
		LCP: old.LCP, Supported: old.Supported,
		Policing: old.Policing, Policers: make(map[string]*Policer), Policed: maps.Clone(old.Policed),
		PolicedUnknown: maps.Clone(old.PolicedUnknown), Classified: maps.Clone(old.Classified), ClassifiedUnknown: maps.Clone(old.ClassifiedUnknown),
		prefixes: make(map[uint32][]netip.Prefix),
	}
	if err := dumpInterfaces(ctx, session, s.add); err != nil {
		return nil, false, fmt.Errorf("quick look: %w", err)
	}
	asked := old.addressed(old.Interfaces)
	if err := session.Dump(ctx, append(connectionDumps(), addressDumps(asked)...), s.add); err != nil {
		return nil, false, fmt.Errorf("quick look: %w", err)
	}
	changed := changedInterfaces(old, s, touched)
	if len(changed) > fewChanged {
		return nil, false, nil
	}
	if err := s.readChanged(ctx, session, old, changed); err != nil {
		return nil, false, err
	}
	s.Index()
	if err := s.takeBonds(ctx, session); err != nil {
		return nil, false, fmt.Errorf("quick look at %w", err)
	}
	if err := session.Dump(ctx, addressDumps(s.addressedAndNotAsked(changed, asked)), s.add); err != nil {
		return nil, false, fmt.Errorf("quick look at addresses: %w", err)
	}
	if err := s.takeIPTables(ctx, session, old); err != nil {
		return nil, false, fmt.Errorf("quick look at tables: %w", err)
	}
	if err := s.quickObservationAtPolicers(ctx, session, old, changed); err != nil {
		return nil, false, fmt.Errorf("quick look at %w", err)
	}
	return s.takeAddresses(), true, nil
}

// fewChanged is up to how many changed interfaces are read one by one.
const fewChanged = 200

// readChanged reads the tunnels among the changed interfaces, and the Linux CP pairs, which come and go with an interface. All
// other tunnels are those of old.
func (s *Snapshot) readChanged(ctx context.Context, session Session, old *Snapshot, changed map[uint32]bool) error {
	for _, t := range old.Tunnels {
		if !changed[t.Index] {
			s.Tunnels = append(s.Tunnels, t)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	for _, known := range []map[uint32]bool{s.Policed, s.PolicedUnknown, s.Classified, s.ClassifiedUnknown} {
		maps.DeleteFunc(known, func(index uint32, _ bool) bool { return changed[index] })
	}
	var dumps []api.Message
	for _, i := range s.Interfaces {
		if changed[i.Index] && !i.IsSub() {
			dumps = append(dumps, s.tunnelDumps(interface_types.InterfaceIndex(i.Index))...)
		}
	}
	if err := session.Dump(ctx, dumps, s.add); err != nil {
		return fmt.Errorf("quick look at changed interfaces: %w", err)
	}
	s.LCP = make(map[uint32]string)
	if err := s.takeLCP(ctx, session); err != nil {
		return fmt.Errorf("quick look at Linux CP pairs: %w", err)
	}
	return nil
}

// addressedAndNotAsked returns the changed interfaces that may have addresses and whose addresses were not read. Those of all
// other interfaces are the same as before, because they are the same interfaces.
func (s *Snapshot) addressedAndNotAsked(changed map[uint32]bool, asked []*Interface) []*Interface {
	var there []*Interface
	for index := range changed {
		if i := s.ByIndex(index); i != nil && !slices.ContainsFunc(asked, func(a *Interface) bool { return a.Index == index }) {
			there = append(there, i)
		}
	}
	return s.addressed(there)
}

// changedInterfaces returns the indices of interfaces that have come, gone or been replaced, and the touched ones: VPP gives
// indices and names out again.
func changedInterfaces(old, now *Snapshot, touched map[uint32]bool) map[uint32]bool {
	changed, there := make(map[uint32]bool, len(touched)), make(map[uint32]bool, len(now.Interfaces))
	maps.Copy(changed, touched)
	for _, i := range now.Interfaces {
		there[i.Index] = true
		if was := old.ByIndex(i.Index); was == nil || !i.Same(was) {
			changed[i.Index] = true
		}
	}
	for _, i := range old.Interfaces {
		if !there[i.Index] {
			changed[i.Index] = true
		}
	}
	return changed
}

// quickObservationAtPolicers asks only about the interfaces on which a policer was seen at work, those that have classify
// tables, and the changed ones.
func (s *Snapshot) quickObservationAtPolicers(ctx context.Context, session Session, old *Snapshot, changed map[uint32]bool) error {
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
