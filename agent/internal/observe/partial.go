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
