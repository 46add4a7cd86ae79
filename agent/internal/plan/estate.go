package plan

import (
	"iter"
	"maps"
	"slices"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/own"
)

// Holding is one interface that belongs to an end.
type Holding struct {
	End       intent.Key
	Revision  int32
	Interface *observe.Interface
	Tunnel    *observe.Tunnel // nil for ports and sub-interfaces
	// Claim is what ownership rests on when no tag says so, else nil.
	Claim *own.Claim

	next *Holding // of the same end
}

// Kind is one of subif, port, vxlan, geneve, gre.
func (h *Holding) Kind() string {
	switch {
	case h.Tunnel != nil:
		return string(h.Tunnel.Encapsulation)
	case h.Interface.IsSub():
		return "subif"
	}
	return "port"
}

func (h *Holding) isPort() bool { return h.Kind() == "port" }

// selection is how VPP tells sub-interfaces of a port apart. Exact match is not part of it.
type selection struct {
	port         uint32
	tags         uint8
	dot1ad       bool
	outer, inner uint16
}

func selectionOf(sub *observe.Interface) selection {
	return selection{sub.Sup, sub.Sub.Tags, sub.Sub.Dot1ad, sub.Sub.Outer, sub.Sub.Inner}
}

func selects(port uint32, a intent.Access) selection {
	return selection{port, uint8(a.Tagging.Tags()), a.Tagging == intent.Dot1ad, a.Outer, a.Inner}
}

// estate is VPP seen with the eyes of an owner: who holds what, and what stands at which key.
type estate struct {
	*observe.Snapshot
	holdings []*Holding // sorted by interface index
	// relabelled is what was tagged and is so no longer, sorted by interface index; it is in no other list.
	relabelled []*Holding
	byIndex    map[uint32]*Holding     // by interface index
	byEnd      map[intent.Key]*Holding // the first of each end; sorted by interface index
	subs       map[selection]*observe.Interface
	tunnels    map[intent.Identity][]*observe.Tunnel
	isTunnel   map[uint32]*observe.Tunnel
	into       map[uint32][]uint32    // interface -> those whose cross-connect leads to it, sorted
	ports      map[string][]own.Claim // what the journal knows of ports, by name
}

func survey(s *observe.Snapshot, journal own.Journal) *estate {
	n := len(s.Interfaces)
	e := &estate{
		Snapshot: s, byIndex: make(map[uint32]*Holding, n), byEnd: make(map[intent.Key]*Holding, n/2),
		subs: make(map[selection]*observe.Interface, n), tunnels: make(map[intent.Identity][]*observe.Tunnel, len(s.Tunnels)),
		isTunnel: make(map[uint32]*observe.Tunnel, len(s.Tunnels)), into: make(map[uint32][]uint32, len(s.Connects)),
	}
	for _, t := range s.Tunnels {
		e.isTunnel[t.Index] = t
		if t.Default || t.Encapsulation == intent.GENEVE {
			e.tunnels[t.Identity()] = append(e.tunnels[t.Identity()], t)
		}
	}
	for from, to := range s.Connects {
		e.into[to] = append(e.into[to], from)
	}
	for _, from := range e.into {
		slices.Sort(from)
	}
	claims := claimsByObject(journal)
	for _, i := range s.Interfaces {
		if i.IsSub() && !i.Sub.Wide {
			e.subs[selectionOf(i)] = i
		}
		if h := e.holdingOf(i, claims); h != nil {
			e.byIndex[i.Index] = h
		} else if h := e.relabelledOf(i, journal.Tagged); h != nil {
			e.relabelled = append(e.relabelled, h)
		}
	}
	e.ports = claims.ports
	e.takeClaimedPorts(claims)
	e.holdings = make([]*Holding, 0, len(e.byIndex))
	for _, i := range s.Interfaces {
		if h := e.byIndex[i.Index]; h != nil {
			e.holdings = append(e.holdings, h)
		}
	}
	for _, h := range slices.Backward(e.holdings) {
		h.next, e.byEnd[h.End] = e.byEnd[h.End], h
	}
	return e
}

// of are the holdings of an end, sorted by interface index.
func (e *estate) of(end intent.Key) iter.Seq[*Holding] {
	return func(yield func(*Holding) bool) {
		for h := e.byEnd[end]; h != nil && yield(h); h = h.next {
		}
	}
}

// takeClaimedPorts gives ports that no tag of the agent marks to the ends that claim them, as far as VPP
// bears them out: the port is cross-connected to something of the same VLL.
func (e *estate) takeClaimedPorts(c claims) {
	claimed := func(i *observe.Interface, vll string) bool {
		return slices.ContainsFunc(c.ports[i.Name], func(claim own.Claim) bool { return claim.VLL == vll }) ||
			slices.ContainsFunc(e.relabelled, func(h *Holding) bool { return h.Interface == i && h.End.VLL == vll })
	}
	taken := make(map[uint32]*Holding)
	for name, all := range c.ports {
		port := e.ByName(name)
		if port == nil || e.byIndex[port.Index] != nil || port.IsSub() || e.isTunnel[port.Index] != nil {
			continue
		}
		to := e.ByIndex(e.connectOf(port.Index))
		if to == nil {
			continue
		}
		for _, claim := range all {
			if h := e.byIndex[to.Index]; h != nil && h.End.VLL == claim.VLL || h == nil && claimed(to, claim.VLL) {
				taken[port.Index] = &Holding{End: claim.Key(), Revision: claim.Revision, Interface: port, Claim: &claim}
			}
		}
	}
	maps.Copy(e.byIndex, taken)
}

// connectOf is where an interface sends, observe.NoIndex when it is not cross-connected.
func (e *estate) connectOf(index uint32) uint32 {
	if to, connected := e.Connects[index]; connected {
		return to
	}
	return observe.NoIndex
}

type claims struct {
	subs    map[own.SubInterface]own.Claim
	tunnels map[own.Tunnel]own.Claim
	ports   map[string][]own.Claim
}

func claimsByObject(journal own.Journal) claims {
	c := claims{make(map[own.SubInterface]own.Claim), make(map[own.Tunnel]own.Claim), make(map[string][]own.Claim)}
	for _, claim := range journal.Claims {
		switch {
		case claim.SubInterface != nil:
			c.subs[*claim.SubInterface] = claim
		case claim.Tunnel != nil:
			c.tunnels[*claim.Tunnel] = claim
		case claim.Port != "":
			c.ports[claim.Port] = append(c.ports[claim.Port], claim)
		}
	}
	return c
}

// holdingOf finds the owner of an interface by its tag; without a tag by a claim to exactly this object
// in this run of VPP, which is what a crash between creation and tag leaves behind.
func (e *estate) holdingOf(i *observe.Interface, c claims) *Holding {
	tunnel := e.isTunnel[i.Index]
	if tag, ours := own.ParseTag(i.Tag); ours {
		return &Holding{End: tag.Key, Revision: tag.Revision, Interface: i, Tunnel: tunnel}
	}
	var claim own.Claim
	var claimed bool
	switch {
	case tunnel != nil:
		if i.Tag == "" && tunnel.Default {
			claim, claimed = c.tunnels[own.TunnelOf(tunnel.Tunnel)]
		}
	case i.IsSub():
		if port := e.ByIndex(i.Sup); i.Tag == "" && port != nil {
			claim, claimed = c.subs[own.SubInterface{
				Port: port.Name, ID: i.Sub.ID, Tags: i.Sub.Tags, Dot1ad: i.Sub.Dot1ad, Outer: i.Sub.Outer, Inner: i.Sub.Inner,
			}]
		}
	}
	if !claimed {
		return nil
	}
	return &Holding{End: claim.Key(), Revision: claim.Revision, Interface: i, Tunnel: tunnel, Claim: &claim}
}
