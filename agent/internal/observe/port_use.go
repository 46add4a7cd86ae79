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

// Use describes how another client uses a port, if no other member of the snapshot shows this use.
type Use struct {
	How    string // the rest of a sentence that begins with the port's name
	Object uint32 // the interface that the use concerns
}

// ReadPortUses reads how other clients use ports that a line will use as a whole. It reads only uses that the
// snapshot s does not show. These are addresses borrowed from another interface, an IPv6 link-local address
// as the only address, a table other than 0, and a new policer. It returns a copy of s with these uses, or s
// itself if there are no ports. VPP stops its workers for each request.
func ReadPortUses(ctx context.Context, session Session, s *Snapshot, ports []*Interface) (*Snapshot, error) {
	if len(ports) == 0 {
		return s, nil
	}
	with := *s
	with.Uses, with.Policed, with.PolicedUnknown = make(map[uint32]Use), maps.Clone(s.Policed), maps.Clone(s.PolicedUnknown)
	for _, read := range []func(context.Context, Session, []*Interface) error{
		with.readUnnumbered, with.readTables, with.readLinkLocal, with.readPolicing,
	} {
		if err := read(ctx, session, ports); err != nil {
			return nil, fmt.Errorf("observe the use of ports: %w", err)
		}
	}
	return &with, nil
}

// note stores a use of a port, unless a use of the port is stored already.
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

func (s *Snapshot) readUnnumbered(ctx context.Context, session Session, ports []*Interface) error {
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

func (s *Snapshot) readTables(ctx context.Context, session Session, ports []*Interface) error {
	if !session.Has(&interfaces.SwInterfaceGetTable{}) {
		return nil
	}
	families := []string{"IPv4", "IPv6"}
	var requests []api.Message
	for _, port := range ports {
		for n := range families {
			requests = append(requests, &interfaces.SwInterfaceGetTable{SwIfIndex: interface_types.InterfaceIndex(port.Index), IsIPv6: n == 1})
		}
	}
	replies, err := session.Calls(ctx, requests)
	for at, reply := range replies {
		if m, ok := reply.(*interfaces.SwInterfaceGetTableReply); ok && m.Retval == 0 && m.VrfID != 0 {
			port := ports[at/len(families)].Index
			s.note(port, port, "is in the %s table %d", families[at%len(families)], m.VrfID)
		}
	}
	return err
}

func (s *Snapshot) readLinkLocal(ctx context.Context, session Session, ports []*Interface) error {
	if !session.Has(&ip.SwInterfaceIP6GetLinkLocalAddress{}) {
		return nil
	}
	var requests []api.Message
	for _, port := range ports {
		requests = append(requests, &ip.SwInterfaceIP6GetLinkLocalAddress{SwIfIndex: interface_types.InterfaceIndex(port.Index)})
	}
	replies, err := session.Calls(ctx, requests)
	for at, reply := range replies {
		if m, ok := reply.(*ip.SwInterfaceIP6GetLinkLocalAddressReply); ok && m.Retval == 0 {
			s.note(ports[at].Index, ports[at].Index, "has IPv6 enabled, with the address %s", m.IP)
		}
	}
	return err
}

func (s *Snapshot) readPolicing(ctx context.Context, session Session, ports []*Interface) error {
	if s.Policing == NoPolicing {
		return nil
	}
	return s.takePoliced(ctx, session, ports)
}
