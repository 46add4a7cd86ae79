package observe

import (
	"context"
	"fmt"
	"maps"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
)

// Use is what somebody else does with a port, beyond what every look shows.
type Use struct {
	How    string // the rest of a sentence that begins with the port's name
	Object uint32 // the interface that it is about
}

// AskUseOfPorts asks of ports that are to be taken whole what no look at everything shows: whether they borrow
// addresses, have only an IPv6 link-local one, belong to another table, or have a policer by now.
// The result is s with the answers, and s itself without ports; VPP stops its workers for each question.
func AskUseOfPorts(ctx context.Context, session Session, s *Snapshot, ports []*Interface) (*Snapshot, error) {
	if len(ports) == 0 {
		return s, nil
	}
	told := *s
	told.Uses, told.Policed, told.PolicedUnknown = make(map[uint32]Use), maps.Clone(s.Policed), maps.Clone(s.PolicedUnknown)
	for _, ask := range []func(context.Context, Session, []*Interface) error{
		told.askForUnnumbered, told.askForTables, told.askForLinkLocal, told.askForPolicing,
	} {
		if err := ask(ctx, session, ports); err != nil {
			return nil, fmt.Errorf("observe the use of ports: %w", err)
		}
	}
	return &told, nil
}

// note keeps the first use of a port.
func (s *Snapshot) note(port, object uint32, how string, args ...any) {
	if _, known := s.Uses[port]; !known {
		s.Uses[port] = Use{fmt.Sprintf(how, args...), object}
	}
}

func (s *Snapshot) nameOf(index uint32) string {
	if i := s.ByIndex(index); i != nil {
		return i.Name
	}
	return fmt.Sprintf("sw_if_index %d", index)
}

func (s *Snapshot) askForUnnumbered(ctx context.Context, session Session, ports []*Interface) error {
	if !session.Has(&ip.IPUnnumberedDump{}) {
		return nil
	}
	var dumps []api.Message
	for _, port := range ports {
		dumps = append(dumps, &ip.IPUnnumberedDump{SwIfIndex: interface_types.InterfaceIndex(port.Index)})
	}
	return session.Dump(ctx, dumps, func(msg api.Message) {
		if m, ok := msg.(*ip.IPUnnumberedDetails); ok {
			s.note(uint32(m.SwIfIndex), uint32(m.SwIfIndex), "is unnumbered and uses the addresses of %s", s.nameOf(uint32(m.IPSwIfIndex)))
		}
	})
}

func (s *Snapshot) askForTables(ctx context.Context, session Session, ports []*Interface) error {
	if !session.Has(&interfaces.SwInterfaceGetTable{}) {
		return nil
	}
	families := []string{"IPv4", "IPv6"}
	var questions []api.Message
	for _, port := range ports {
		for n := range families {
			questions = append(questions, &interfaces.SwInterfaceGetTable{SwIfIndex: interface_types.InterfaceIndex(port.Index), IsIPv6: n == 1})
		}
	}
	answers, err := session.Calls(ctx, questions)
	for at, answer := range answers {
		if m, ok := answer.(*interfaces.SwInterfaceGetTableReply); ok && m.Retval == 0 && m.VrfID != 0 {
			port := ports[at/len(families)].Index
			s.note(port, port, "is in the %s table %d", families[at%len(families)], m.VrfID)
		}
	}
	return err
}

func (s *Snapshot) askForLinkLocal(ctx context.Context, session Session, ports []*Interface) error {
	if !session.Has(&ip.SwInterfaceIP6GetLinkLocalAddress{}) {
		return nil
	}
	var questions []api.Message
	for _, port := range ports {
		questions = append(questions, &ip.SwInterfaceIP6GetLinkLocalAddress{SwIfIndex: interface_types.InterfaceIndex(port.Index)})
	}
	answers, err := session.Calls(ctx, questions)
	for at, answer := range answers {
		if m, ok := answer.(*ip.SwInterfaceIP6GetLinkLocalAddressReply); ok && m.Retval == 0 {
			s.note(ports[at].Index, ports[at].Index, "has IPv6 enabled, with the address %s", m.IP)
		}
	}
	return err
}

func (s *Snapshot) askForPolicing(ctx context.Context, session Session, ports []*Interface) error {
	if s.Policing == NoPolicing {
		return nil
	}
	return s.takePoliced(ctx, session, ports)
}
