package observe

import (
	"context"
	"fmt"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
)

// fewPorts is up to how many ports each is asked for by name; VPP goes through all its interfaces for each.
const fewPorts = 8

// Ports reads these ports of old and their sub-interfaces again, and shows nothing else. It is for the moment
// before a sub-interface is created, and VPP does not stop its workers for it. Without ports it asks nothing.
func Ports(ctx context.Context, session Session, old *Snapshot, ports []uint32) (*Snapshot, error) {
	s := &Snapshot{}
	if len(ports) == 0 {
		return s.Index(), nil
	}
	asked := make(map[uint32]bool, len(ports))
	var dumps []api.Message
	for _, index := range ports {
		asked[index] = true
		if port := old.ByIndex(index); port != nil && len(ports) <= fewPorts {
			dumps = append(dumps, &interfaces.SwInterfaceDump{SwIfIndex: anyInterface, NameFilterValid: true, NameFilter: port.Name})
		}
	}
	if len(dumps) < len(asked) {
		dumps = []api.Message{&interfaces.SwInterfaceDump{SwIfIndex: anyInterface}}
	}
	seen := make(map[uint32]bool) // VPP looks for the name anywhere in a name, so answers come twice
	err := session.Dump(ctx, dumps, func(msg api.Message) {
		if m, ok := msg.(*interfaces.SwInterfaceDetails); ok && asked[m.SupSwIfIndex] && !seen[uint32(m.SwIfIndex)] {
			seen[uint32(m.SwIfIndex)] = true
			s.Interfaces = append(s.Interfaces, interfaceOf(m))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("observe ports: %w", err)
	}
	return s.Index(), nil
}

// OnlyPorts is what Ports would read in a VPP in which no interface has come or gone since s was read.
func (s *Snapshot) OnlyPorts(ports []uint32) *Snapshot {
	only := &Snapshot{}
	for _, index := range ports {
		if port := s.ByIndex(index); port != nil {
			only.Interfaces = append(append(only.Interfaces, port), s.Subs(index)...)
		}
	}
	return only.Index()
}
