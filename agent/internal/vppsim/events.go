package vppsim

import (
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
)

func eventOperations() []operation {
	return []operation{on((*vpp).wantInterfaceEvents,
		&interfaces.WantInterfaceEventsReply{}, &interfaces.SwInterfaceEvent{})}
}

// wantInterfaceEvents registers a client for events. It refuses a second registration of the client, and
// the removal of a registration that does not exist.
func (v *vpp) wantInterfaceEvents(c *call, m *interfaces.WantInterfaceEvents) {
	reply := &interfaces.WantInterfaceEventsReply{}
	_, watching := v.watchers[c.client]
	switch wanted := m.EnableDisable != 0; {
	case wanted == watching:
		reply.Retval = retvalInvalidRegistration
	case wanted:
		v.watchers[c.client] = m.PID
	default:
		delete(v.watchers, c.client)
	}
	c.reply(reply)
}

// announce sends the state of the interface to all clients that have registered for events.
func (v *vpp) announce(i *iface, deleted bool) {
	flags := interface_types.IfStatusFlags(0)
	if !deleted {
		flags = v.flags(i)
	}
	for c, pid := range v.watchers {
		c.send(&interfaces.SwInterfaceEvent{
			PID: pid, SwIfIndex: interface_types.InterfaceIndex(i.index), Flags: flags, Deleted: deleted,
		}, c.index)
	}
}
