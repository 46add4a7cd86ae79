package observe

import (
	"context"
	"fmt"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/classify"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/policer"

	"longline.dev/agent/internal/vpp"
)

// NamedByIndex lists objects that messages name by index. The agent reads these objects before it sends the
// messages, because VPP reuses indices.
type NamedByIndex struct {
	Interfaces []uint32
	Tunnels    []*Tunnel // the keys of these tunnels are read in addition to the interfaces
	Policers   []uint32
	Tables     []uint32 // classify tables
}

// Len returns the number of messages that read the objects.
func (n *NamedByIndex) Len() int {
	return len(n.Interfaces) + len(n.Tunnels) + len(n.Policers) + len(n.Tables)
}

// AddInterface adds an interface, unless it is listed already.
func (n *NamedByIndex) AddInterface(index uint32) (added bool) {
	if slices.Contains(n.Interfaces, index) {
		return false
	}
	n.Interfaces = append(n.Interfaces, index)
	return true
}

// ByIndex returns a snapshot of only the objects that have these indices now. VPP does not stop its workers
// while ByIndex reads interfaces.
func ByIndex(ctx context.Context, session Session, named *NamedByIndex) (*Snapshot, error) {
	s := &Snapshot{Policers: make(map[string]*Policer), Classifiers: noClassifiers()}
	var dumps []api.Message
	for _, index := range named.Interfaces {
		dumps = append(dumps, &interfaces.SwInterfaceDump{SwIfIndex: interface_types.InterfaceIndex(index)})
	}
	for _, t := range named.Tunnels {
		dumps = append(dumps, t.Kind().Dump(session.Has, interface_types.InterfaceIndex(t.Index)))
	}
	first := len(dumps)
	for _, index := range named.Policers {
		dumps = append(dumps, &policer.PolicerDumpV2{PolicerIndex: index})
	}
	for _, index := range named.Tables {
		dumps = append(dumps, &classify.ClassifyTableInfo{TableID: index})
	}
	err := session.DumpEach(ctx, dumps, func(at int, answer api.Message) {
		if m, ok := answer.(*classify.ClassifyTableInfoReply); ok {
			if t := tableOf(m); t != nil {
				s.Tables[t.Index] = t
			}
			return
		}
		if m, ok := answer.(*policer.PolicerDetails); ok {
			s.Policers[vpp.Text(m.Name)] = &Policer{Index: named.Policers[at-first], Config: configOf(m)}
			return
		}
		s.add(answer)
	})
	if err != nil {
		return nil, fmt.Errorf("observe objects by index: %w", err)
	}
	return s.Index(), nil
}

// AllInterfaces returns a snapshot of only the interfaces that exist now. If keys is true, AllInterfaces also
// reads the tunnels, and VPP stops its workers once for each kind of tunnel.
func AllInterfaces(ctx context.Context, session Session, keys bool) (*Snapshot, error) {
	s := new(Snapshot)
	err := dumpInterfaces(ctx, session, s.add)
	if err == nil && keys {
		err = s.dumpTunnels(ctx, session)
	}
	if err != nil {
		return nil, fmt.Errorf("observe all interfaces: %w", err)
	}
	return s.Index(), nil
}

// fewPorts is the largest number of ports that are requested by name. VPP searches all its interfaces for
// each name.
const fewPorts = 8

// Ports reads these ports and their sub-interfaces again, and returns a snapshot of only these interfaces.
// old must have the ports' names. The agent needs this snapshot before it creates a sub-interface. VPP does
// not stop its workers for this. If ports is empty, Ports sends no request.
func Ports(ctx context.Context, session Session, old *Snapshot, ports []uint32) (*Snapshot, error) {
	s := &Snapshot{}
	if len(ports) == 0 {
		return s.Index(), nil
	}
	requested := make(map[uint32]bool, len(ports))
	var dumps []api.Message
	for _, index := range ports {
		requested[index] = true
		if port := old.ByIndex(index); port != nil && len(ports) <= fewPorts {
			dumps = append(dumps, &interfaces.SwInterfaceDump{SwIfIndex: anyInterface, NameFilterValid: true, NameFilter: port.Name})
		}
	}
	if len(dumps) < len(requested) {
		dumps = []api.Message{&interfaces.SwInterfaceDump{SwIfIndex: anyInterface}}
	}
	added := make(map[uint32]bool) // VPP also reports interfaces whose names contain the requested name, so it may report an interface twice
	err := session.Dump(ctx, dumps, func(msg api.Message) {
		if m, ok := msg.(*interfaces.SwInterfaceDetails); ok && requested[m.SupSwIfIndex] && !added[uint32(m.SwIfIndex)] {
			added[uint32(m.SwIfIndex)] = true
			s.Interfaces = append(s.Interfaces, interfaceOf(m))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("observe ports: %w", err)
	}
	return s.Index(), nil
}

// OnlyPorts returns the result that Ports would have if no interface has been created or deleted since s was
// read. It does not query VPP.
func (s *Snapshot) OnlyPorts(ports []uint32) *Snapshot {
	only := &Snapshot{}
	for _, index := range ports {
		if port := s.ByIndex(index); port != nil {
			only.Interfaces = append(append(only.Interfaces, port), s.Subs(index)...)
		}
	}
	return only.Index()
}
