package observe

import (
	"context"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
)

// takeIPTables asks in which tables the addresses are that were just read. Tunnels end on host addresses: of these it is asked each
// time, for somebody can take them off, move the interface and give them back between two looks. Of other interfaces that have
// the same addresses as in old, nil for none, it is as it was: VPP moves none that has addresses.
func (s *Snapshot) takeIPTables(ctx context.Context, session Session, old *Snapshot) error {
	if !session.Has(&interfaces.SwInterfaceGetTable{}) {
		return nil
	}
	type question struct {
		of     *Interface
		family int
	}
	var questions []question
	var requests []api.Message
	for index, prefixes := range s.prefixes {
		i := s.ByIndex(index)
		if i == nil {
			continue
		}
		if old != nil {
			was := old.ByIndex(index)
			if was != nil && was.Same(i) && slices.Equal(was.Addresses, prefixes) && !slices.ContainsFunc(prefixes, netip.Prefix.IsSingleIP) {
				i.Tables = was.Tables
				continue
			}
		}
		for family := range i.Tables {
			if slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return Family(p.Addr()) == family }) {
				questions = append(questions, question{i, family})
				requests = append(requests, &interfaces.SwInterfaceGetTable{
					SwIfIndex: interface_types.InterfaceIndex(index), IsIPv6: family == 1,
				})
			}
		}
	}
	if len(requests) == 0 {
		return nil
	}
	answers, err := session.Calls(ctx, requests)
	for at, answer := range answers {
		if m, ok := answer.(*interfaces.SwInterfaceGetTableReply); ok && m.Retval == 0 {
			questions[at].of.Tables[questions[at].family] = m.VrfID
		}
	}
	return err
}
