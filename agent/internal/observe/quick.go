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
	"go.fd.io/govpp/binapi/l2"
)

// Quick is the quick look: it reads again only what others can change of what was seen before: admin state, link, MTUs,
// tags and tag rewrites of all interfaces, addresses, bridges, cross-connects, and the policers that were at work.
// Tunnels and Linux CP pairs are as in old: neither changes while its interface stays. Of the touched interfaces,
// tunnels are read too. ok is false when among all others not the same are there; then only Full tells what is.
//
// It is for looking often: of its messages VPP stops its workers for l2_xconnect_dump, for sw_interface_get_table of
// interfaces with host addresses, for those about policers where there are any, and before 25.02 for ip_address_dump. Full costs a
// stop for every kind of tunnel too, the longer the more there are (docs/how-the-agent-reads-vpp.md).
func Quick(ctx context.Context, session Session, old *Snapshot, touched map[uint32]bool) (s *Snapshot, ok bool, err error) {
	s = &Snapshot{
		Boot: old.Boot, Connects: make(map[uint32]uint32, len(old.Connects)), Bridged: make(map[uint32]uint32),
		LCP: old.LCP, Supported: old.Supported,
		Policing: old.Policing, Policers: make(map[string]*Policer), Policed: maps.Clone(old.Policed),
		PolicedUnknown: maps.Clone(old.PolicedUnknown), Classified: maps.Clone(old.Classified), ClassifiedUnknown: maps.Clone(old.ClassifiedUnknown),
		prefixes: make(map[uint32][]netip.Prefix),
	}
	dumps := []api.Message{
		&interfaces.SwInterfaceDump{SwIfIndex: anyInterface},
		&l2.L2XconnectDump{},
		&l2.BridgeDomainDump{BdID: NoIndex, SwIfIndex: anyInterface},
	}
	for _, t := range old.Tunnels {
		if !touched[t.Index] {
			s.Tunnels = append(s.Tunnels, t)
			continue
		}
		dumps = append(dumps, s.tunnelDumps(interface_types.InterfaceIndex(t.Index))...)
	}
	asked := old.addressed(old.Interfaces)
	if err := session.Dump(ctx, append(dumps, addressDumps(asked)...), s.add); err != nil {
		return nil, false, fmt.Errorf("quick look: %w", err)
	}
	if !sameInterfaces(old, s, touched) {
		return nil, false, nil
	}
	s.Index()
	if err := s.takeBonds(ctx, session); err != nil {
		return nil, false, fmt.Errorf("quick look at %w", err)
	}
	if err := session.Dump(ctx, addressDumps(s.addressedAndNotAsked(touched, asked)), s.add); err != nil {
		return nil, false, fmt.Errorf("quick look at addresses: %w", err)
	}
	if err := s.takeIPTables(ctx, session, old); err != nil {
		return nil, false, fmt.Errorf("quick look at tables: %w", err)
	}
	if err := s.quickObservationAtPolicers(ctx, session, old); err != nil {
		return nil, false, fmt.Errorf("quick look at %w", err)
	}
	return s.takeAddresses(), true, nil
}

// addressedAndNotAsked are the touched interfaces that may have addresses and have not been asked about. Of all others
// it is the same as before, because they are the same.
func (s *Snapshot) addressedAndNotAsked(touched map[uint32]bool, asked []*Interface) []*Interface {
	var there []*Interface
	for index := range touched {
		if i := s.ByIndex(index); i != nil && !slices.ContainsFunc(asked, func(a *Interface) bool { return a.Index == index }) {
			there = append(there, i)
		}
	}
	return s.addressed(there)
}

// sameInterfaces: VPP gives indices and names out again.
func sameInterfaces(old, now *Snapshot, but map[uint32]bool) bool {
	left := len(old.Interfaces)
	for index := range but {
		if old.ByIndex(index) != nil {
			left--
		}
	}
	for _, i := range now.Interfaces {
		if but[i.Index] {
			continue
		}
		if was := old.ByIndex(i.Index); was == nil || !i.Same(was) {
			return false
		}
		left--
	}
	return left == 0
}

// quickObservationAtPolicers asks only about the interfaces on which a policer was seen at work, and those that have classify tables.
func (s *Snapshot) quickObservationAtPolicers(ctx context.Context, session Session, old *Snapshot) error {
	if s.Classifiers = old.Classifiers; len(old.Policers) == 0 {
		return nil
	}
	var policed []*Interface
	for _, i := range s.Interfaces {
		if old.Policed[i.Index] || old.PolicedUnknown[i.Index] {
			policed = append(policed, i)
		}
	}
	if err := s.takePolicers(ctx, session, old.Policers, policed); err != nil {
		return err
	}
	return s.takeClassifiers(ctx, session, nil, s.Interfaces)
}
