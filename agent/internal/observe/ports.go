package observe

import (
	"context"
	"fmt"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
)

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
