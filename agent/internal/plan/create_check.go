package plan

import (
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/tunnel"
)

// CreateCheck uses a snapshot that is newer than the plan, to check whether the objects of the plan may still
// be created.
type CreateCheck struct {
	now     *observe.Snapshot
	subs    *subInterfaces
	ids     map[subID]*observe.Interface
	tunnels map[tunnel.Identity]*observe.Tunnel
}

type subID struct{ port, id uint32 }

// NewCreateCheck builds indexes of a snapshot. With them, the time to check a plan grows only linearly with
// the length of the plan.
func NewCreateCheck(now *observe.Snapshot) *CreateCheck {
	interfaces, tunnels := len(now.Interfaces), len(now.Tunnels)
	c := &CreateCheck{
		now: now, subs: newSubInterfaces(interfaces), ids: make(map[subID]*observe.Interface, interfaces),
		tunnels: make(map[tunnel.Identity]*observe.Tunnel, tunnels),
	}
	for _, i := range now.Interfaces {
		if !i.IsSub() {
			continue
		}
		c.ids[subID{i.Sup, i.Sub.ID}] = i
		c.subs.add(i)
	}
	for _, t := range now.Tunnels {
		if t.TakesKey() {
			c.tunnels[t.Identity()] = t
		}
	}
	return c
}

// Verify returns the reason why the operation must no longer be sent, or nil. The key of an object to be
// created must still be free. If a sub-interface with the same VLANs exists, VPP refuses the new
// sub-interface and stops the traffic of the existing sub-interface. A more specific sub-interface takes the
// frames of a less specific sub-interface.
func (c *CreateCheck) Verify(op Op) *Reason {
	switch a := op.Action.(type) {
	case CreateSub:
		return c.sub(a)
	case CreateTunnel:
		if t := c.tunnels[a.Tunnel.Identity()]; t != nil {
			return c.taken(t.Index)
		}
	}
	return nil
}

func (c *CreateCheck) sub(a CreateSub) *Reason {
	if existing := c.ids[subID{a.Port.Index, a.ID}]; existing != nil {
		return c.taken(existing.Index)
	}
	for existing := range c.subs.overlapping(a.Port.Index, a.Access) {
		return pending("verify_mismatch", Describe(existing), "%s, which takes %s, was created meanwhile and shares frames with VLAN %s",
			existing.Name, taken(existing.Sub), vlan(a.Access))
	}
	return nil
}

func (c *CreateCheck) taken(index uint32) *Reason {
	i := c.now.ByIndex(index)
	if i == nil {
		return pending("verify_mismatch", "", "the object to be created exists by now")
	}
	return pending("verify_mismatch", Describe(i), "%s exists where another one is to be created", i.Name)
}

func changed(ref Ref) *Reason {
	return pending("verify_mismatch", ref.Name, "%s went or changed while the plan was carried out", ref.Name)
}
