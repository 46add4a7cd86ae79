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

// connect is a cross-connect: where it leads, then where it comes from. So those that lead to the same stand together.
type connect uint64

func connectOf(from, to uint32) connect { return connect(to)<<32 | connect(from) }

func (c connect) from() uint32 { return uint32(c) }
func (c connect) to() uint32   { return uint32(c >> 32) }

// estate is VPP seen with the eyes of an owner: who holds what, and what stands at which key.
type estate struct {
	*observe.Snapshot
	holdings []*Holding // sorted by interface index
	// relabelled is what was tagged and is so no longer, sorted by interface index; it is in no other list.
	relabelled []*Holding
	byIndex    map[uint32]*Holding     // by interface index
	byEnd      map[intent.Key]*Holding // the first of each end; sorted by interface index
	subs       map[selection]*observe.Interface
	tunnels    map[intent.Identity]*observe.Tunnel // the first of each
	twins      []*observe.Tunnel                   // all others
	connects   []connect                           // sorted
	ports      map[string][]own.Claim              // what the journal knows of ports, by name
}

func survey(s *observe.Snapshot, journal own.Journal) *estate {
	n := len(s.Interfaces)
	e := &estate{
		Snapshot: s, byIndex: make(map[uint32]*Holding, n), byEnd: make(map[intent.Key]*Holding, n/2),
		subs: make(map[selection]*observe.Interface, n/2), tunnels: make(map[intent.Identity]*observe.Tunnel, len(s.Tunnels)),
		connects: make([]connect, 0, len(s.Connects)),
	}
	for _, t := range s.Tunnels {
		if !t.Default && t.Encapsulation != intent.GENEVE {
			continue
		}
		if identity := t.Identity(); e.tunnels[identity] == nil {
			e.tunnels[identity] = t
		} else {
			e.twins = append(e.twins, t)
		}
	}
	for from, to := range s.Connects {
		e.connects = append(e.connects, connectOf(from, to))
	}
	slices.Sort(e.connects)
	claims := claimsByObject(journal)
	held := make([]Holding, 0, n) // never grows, so that all stay where they are
	for _, i := range s.Interfaces {
		if i.IsSub() && !i.Sub.Wide {
			e.subs[selectionOf(i)] = i
		}
		if h, ours := e.holdingOf(i, claims); ours {
			held = append(held, h)
			e.byIndex[i.Index] = &held[len(held)-1]
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
	for _, h := range e.holdings {
		last := e.byEnd[h.End]
		if last == nil {
			e.byEnd[h.End] = h
			continue
		}
		for last.next != nil {
			last = last.next
		}
		last.next = h
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

// into are the interfaces whose cross-connect leads to this one, sorted.
func (e *estate) into(to uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		at, _ := slices.BinarySearch(e.connects, connectOf(0, to))
		for ; at < len(e.connects) && e.connects[at].to() == to && yield(e.connects[at].from()); at++ {
		}
	}
}

// sameKey are the tunnels that VPP takes for the same, sorted by interface index.
func (e *estate) sameKey(identity intent.Identity) iter.Seq[*observe.Tunnel] {
	return func(yield func(*observe.Tunnel) bool) {
		first := e.tunnels[identity]
		if first == nil || !yield(first) {
			return
		}
		for _, t := range e.twins {
			if t.Identity() == identity && !yield(t) {
				return
			}
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
		if port == nil || e.byIndex[port.Index] != nil || port.IsSub() || e.TunnelAt(port.Index) != nil {
			continue
		}
		to := e.ByIndex(e.leadsTo(port.Index))
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

// leadsTo is where an interface sends, observe.NoIndex when it is not cross-connected.
func (e *estate) leadsTo(index uint32) uint32 {
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
func (e *estate) holdingOf(i *observe.Interface, c claims) (h Holding, ours bool) {
	tunnel := e.TunnelAt(i.Index)
	if tag, ours := own.ParseTag(i.Tag); ours {
		return Holding{End: tag.Key, Revision: tag.Revision, Interface: i, Tunnel: tunnel}, true
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
		return Holding{}, false
	}
	return Holding{End: claim.Key(), Revision: claim.Revision, Interface: i, Tunnel: tunnel, Claim: &claim}, true
}
