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

	"longline.dev/agent/internal/tunnel"
)

// Partial reads the touched interfaces again. It also reads all cross-connects, bridges and policers, because
// VPP lists these only as a whole. It takes the rest of the snapshot from old. This is enough to verify
// changes of a few lines on a router with thousands of lines.
func Partial(ctx context.Context, session Session, old *Snapshot, touched map[uint32]bool) (*Snapshot, error) {
	s := &Snapshot{
		Boot: old.Boot, Connects: make(map[uint32]uint32, len(old.Connects)), Bridged: make(map[uint32]uint32), LCP: old.LCP,
		Supported: old.Supported, Policing: old.Policing, Policers: make(map[string]*Policer), Policed: maps.Clone(old.Policed),
		PolicedUnknown: maps.Clone(old.PolicedUnknown), Classified: maps.Clone(old.Classified), ClassifiedUnknown: maps.Clone(old.ClassifiedUnknown),
		Uses: old.Uses, prefixes: make(map[uint32][]netip.Prefix),
	}
	for _, i := range old.Interfaces {
		if !touched[i.Index] {
			s.Interfaces = append(s.Interfaces, i)
		} else {
			for _, known := range []map[uint32]bool{s.Policed, s.PolicedUnknown, s.Classified, s.ClassifiedUnknown} {
				delete(known, i.Index)
			}
		}
	}
	for _, t := range old.Tunnels {
		if !touched[t.Index] {
			s.Tunnels = append(s.Tunnels, t)
		}
	}
	kept := len(s.Interfaces)
	if err := session.Dump(ctx, dumpsOf(session.Has, touched), s.add); err != nil {
		return nil, fmt.Errorf("read back: %w", err)
	}
	again := slices.Clone(s.Interfaces[kept:]) // Index sorts the interfaces
	s.Index()
	if err := s.takeBonds(ctx, session); err != nil {
		return nil, fmt.Errorf("read back %w", err)
	}
	if err := session.Dump(ctx, addressDumps(s.addressed(again)), s.add); err != nil {
		return nil, fmt.Errorf("read back addresses: %w", err)
	}
	if err := s.takeIPTables(ctx, session, old); err != nil {
		return nil, fmt.Errorf("read back tables: %w", err)
	}
	if err := s.takePolicers(ctx, session, old.Policers, s.usedByLines(again, nil)); err != nil {
		return nil, fmt.Errorf("read back %w", err)
	}
	if err := s.takeClassifiers(ctx, session, old.Tables, again); err != nil {
		return nil, fmt.Errorf("read back %w", err)
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

func dumpsOf(has tunnel.Has, touched map[uint32]bool) []api.Message {
	dumps := connectionDumps()
	for index := range touched {
		at := interface_types.InterfaceIndex(index)
		dumps = append(dumps, &interfaces.SwInterfaceDump{SwIfIndex: at})
		dumps = append(dumps, tunnel.Dumps(has, at)...)
	}
	return dumps
}
