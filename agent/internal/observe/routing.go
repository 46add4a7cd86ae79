package observe

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"

	"longline.dev/agent/internal/vpp"
)

// takeIPTables reads the tables of the addresses that were just read. VPP does not move an interface with
// addresses to another table. So takeIPTables does not read the tables of an interface again if its addresses
// are the same as in old. old is nil if there is no earlier snapshot.
//
// It reads the tables of interfaces with host addresses each time, because tunnels end at these addresses.
// Between two observations, another client can remove the addresses, move the interface and add the addresses
// again.
func (s *Snapshot) takeIPTables(ctx context.Context, session Session, old *Snapshot) error {
	if !session.Has(&interfaces.SwInterfaceGetTable{}) {
		return nil
	}
	type query struct {
		of     *Interface
		family int
	}
	var queries []query
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
				queries = append(queries, query{i, family})
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
			queries[at].of.Tables[queries[at].family] = m.VrfID
		}
	}
	return err
}

// Caller sends pipelined requests.
type Caller interface {
	Calls(ctx context.Context, reqs []api.Message) ([]api.Message, error)
}

// Destination is an address, and the table in which to look it up.
type Destination struct {
	Table   uint32
	Address netip.Addr
}

// Compare defines the order of destinations.
func (d Destination) Compare(o Destination) int {
	return cmp.Or(cmp.Compare(d.Table, o.Table), d.Address.Compare(o.Address))
}

// Reachable looks up the best route to each destination. An address is reachable if at least one path of the
// route does not drop packets. A default route counts only if defaultRoutes is true. An address in a table
// that does not exist is not reachable.
func Reachable(ctx context.Context, session Caller, destinations []Destination, defaultRoutes bool) (map[Destination]bool, error) {
	var lookups []api.Message
	for _, to := range destinations {
		lookups = append(lookups, vpp.RouteLookup(to.Table, to.Address))
	}
	replies, err := session.Calls(ctx, lookups)
	if err != nil {
		return nil, err
	}
	reachable := make(map[Destination]bool, len(destinations))
	for n, to := range destinations {
		reply := replies[n].(*ip.IPRouteLookupReply)
		reachable[to] = reply.Retval == 0 && vpp.Leads(reply.Route) && (defaultRoutes || reply.Route.Prefix.Len > 0)
	}
	return reachable, nil
}
