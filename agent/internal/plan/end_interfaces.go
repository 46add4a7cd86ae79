package plan

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/tunnel"
)

// EndInterface is one interface that belongs to an end.
type EndInterface struct {
	End       intent.Key
	Revision  int32
	Interface *observe.Interface
	Tunnel    *observe.Tunnel // nil for ports and sub-interfaces
	// Claim proves the ownership of an interface without the agent's tag, otherwise nil.
	Claim *ownership.Claim
	// Adopted means that this plan adopts the interface, which does not have the agent's tag yet.
	Adopted bool

	next *EndInterface // the next interface of the same end, by interface index
}

// Kind returns "subif", "port", "vxlan", "geneve" or "gre".
func (h *EndInterface) Kind() string {
	switch {
	case h.Tunnel != nil:
		return string(h.Tunnel.Encapsulation)
	case h.Interface.IsSub():
		return "subif"
	}
	return "port"
}

func (h *EndInterface) isPort() bool { return h.Kind() == "port" }

// connect is one direction of a cross-connect. The upper 32 bits are the index of the target, and the lower
// 32 bits are the index of the source. Sorting therefore groups the directions with the same target.
type connect uint64

func connectOf(from, to uint32) connect { return connect(to)<<32 | connect(from) }

func (c connect) from() uint32 { return uint32(c) }
func (c connect) to() uint32   { return uint32(c >> 32) }

// ownerView is a snapshot of VPP in which the interfaces of an end, and the object with a given key, can be
// found quickly.
type ownerView struct {
	*observe.Snapshot
	endInterfaces []*EndInterface // sorted by interface index
	// relabelled are the interfaces that no longer have the agent's tag, sorted by interface index. They
	// are in no other list.
	relabelled       []*EndInterface
	byIndex          map[uint32]*EndInterface     // by interface index
	byEnd            map[intent.Key]*EndInterface // the first interface of each end, by interface index
	subs             *subInterfaces
	tunnels          map[tunnel.Identity]*observe.Tunnel // the first tunnel with each key
	duplicateTunnels []*observe.Tunnel                   // the further tunnels with the same keys
	connects         []connect                           // sorted
	ports            map[string][]ownership.Claim        // the journal's claims to ports, by name
	members          []ownership.Claim                   // claims to members of bonds
	tablesByMark     map[uint32][]*observe.ClassifyTable // sorted by index
	boundTo          map[uint32][]uint32                 // interface indices by the classify table that is bound to them, sorted
}

func findOwners(s *observe.Snapshot, journal ownership.Journal) *ownerView {
	n := len(s.Interfaces)
	o := &ownerView{
		Snapshot: s, byIndex: make(map[uint32]*EndInterface, n), byEnd: make(map[intent.Key]*EndInterface, n/2),
		subs: newSubInterfaces(n / 2), tunnels: make(map[tunnel.Identity]*observe.Tunnel, len(s.Tunnels)),
		connects: make([]connect, 0, len(s.Connects)),
	}
	for _, t := range s.Tunnels {
		if !t.TakesKey() {
			continue
		}
		if identity := t.Identity(); o.tunnels[identity] == nil {
			o.tunnels[identity] = t
		} else {
			o.duplicateTunnels = append(o.duplicateTunnels, t)
		}
	}
	for from, to := range s.Connects {
		o.connects = append(o.connects, connectOf(from, to))
	}
	slices.Sort(o.connects)
	o.findTables()
	claims := claimsByObject(journal)
	endInterfaces := make([]EndInterface, 0, n) // never grows, so that pointers to its elements stay valid
	for _, i := range s.Interfaces {
		if i.IsSub() {
			o.subs.add(i)
		}
		if h, ours := o.endInterfaceOf(i, claims); ours {
			endInterfaces = append(endInterfaces, h)
			o.byIndex[i.Index] = &endInterfaces[len(endInterfaces)-1]
		} else if h := o.relabelledOf(i, journal.Tagged); h != nil {
			o.relabelled = append(o.relabelled, h)
		}
	}
	o.ports, o.members = claims.ports, claims.members
	o.takeClaimedPorts(claims)
	o.endInterfaces = make([]*EndInterface, 0, len(o.byIndex))
	for _, i := range s.Interfaces {
		if h := o.byIndex[i.Index]; h != nil {
			o.endInterfaces = append(o.endInterfaces, h)
		}
	}
	for _, h := range o.endInterfaces {
		o.link(h)
	}
	return o
}

// assign adds an end interface. The interface in it then belongs to an end.
func (o *ownerView) assign(h *EndInterface) {
	o.byIndex[h.Interface.Index] = h
	at, _ := slices.BinarySearchFunc(o.endInterfaces, h.Interface.Index, func(existing *EndInterface, index uint32) int {
		return cmp.Compare(existing.Interface.Index, index)
	})
	o.endInterfaces = slices.Insert(o.endInterfaces, at, h)
	o.link(h)
}

// link adds the end interface to the linked list of its end.
func (o *ownerView) link(h *EndInterface) {
	at := o.byEnd[h.End]
	if at == nil || h.Interface.Index < at.Interface.Index {
		h.next, o.byEnd[h.End] = at, h
		return
	}
	for at.next != nil && at.next.Interface.Index < h.Interface.Index {
		at = at.next
	}
	h.next, at.next = at.next, h
}

// interfacesOf returns the endInterfaces of an end, sorted by interface index.
func (o *ownerView) interfacesOf(end intent.Key) iter.Seq[*EndInterface] {
	return func(yield func(*EndInterface) bool) {
		for h := o.byEnd[end]; h != nil && yield(h); h = h.next {
		}
	}
}

// sendersInto returns the indices of the interfaces whose cross-connect leads to this interface, sorted.
func (o *ownerView) sendersInto(to uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		at, _ := slices.BinarySearch(o.connects, connectOf(0, to))
		for ; at < len(o.connects) && o.connects[at].to() == to && yield(o.connects[at].from()); at++ {
		}
	}
}

// tunnelsWithKey returns the tunnels that have this key in VPP's lookup, sorted by interface index.
func (o *ownerView) tunnelsWithKey(identity tunnel.Identity) iter.Seq[*observe.Tunnel] {
	return func(yield func(*observe.Tunnel) bool) {
		first := o.tunnels[identity]
		if first == nil || !yield(first) {
			return
		}
		for _, t := range o.duplicateTunnels {
			if t.Identity() == identity && !yield(t) {
				return
			}
		}
	}
}

// takeClaimedPorts assigns ports without a tag of the agent to the ends that have claims to these ports in
// the journal. It does so only if VPP confirms the claim: the port must be cross-connected to an interface of
// the same VLL.
func (o *ownerView) takeClaimedPorts(c claims) {
	claimed := func(i *observe.Interface, vll string) bool {
		return slices.ContainsFunc(c.ports[i.Name], func(claim ownership.Claim) bool { return claim.VLL == vll }) ||
			slices.ContainsFunc(o.relabelled, func(h *EndInterface) bool { return h.Interface == i && h.End.VLL == vll })
	}
	taken := make(map[uint32]*EndInterface)
	for name, all := range c.ports {
		port := o.ByName(name)
		if port == nil || o.byIndex[port.Index] != nil || port.IsSub() || o.TunnelAt(port.Index) != nil {
			continue
		}
		to := o.ByIndex(o.leadsTo(port.Index))
		if to == nil {
			continue
		}
		for _, claim := range all {
			if h := o.byIndex[to.Index]; h != nil && h.End.VLL == claim.VLL || h == nil && claimed(to, claim.VLL) {
				taken[port.Index] = &EndInterface{End: claim.Key(), Revision: claim.Revision, Interface: port, Claim: &claim}
			}
		}
	}
	maps.Copy(o.byIndex, taken)
}

// leadsTo returns the index of the interface that an interface is cross-connected to, or observe.NoIndex if
// there is no cross-connect.
func (o *ownerView) leadsTo(index uint32) uint32 {
	if to, connected := o.Connects[index]; connected {
		return to
	}
	return observe.NoIndex
}

type claims struct {
	subs    map[ownership.SubInterface]ownership.Claim
	tunnels map[ownership.Tunnel]ownership.Claim
	ports   map[string][]ownership.Claim
	members []ownership.Claim
}

func claimsByObject(journal ownership.Journal) claims {
	c := claims{
		subs: make(map[ownership.SubInterface]ownership.Claim), tunnels: make(map[ownership.Tunnel]ownership.Claim),
		ports: make(map[string][]ownership.Claim),
	}
	for _, claim := range journal.Claims {
		switch {
		case claim.SubInterface != nil:
			c.subs[*claim.SubInterface] = claim
		case claim.Tunnel != nil:
			c.tunnels[*claim.Tunnel] = claim
		case claim.Port != "":
			c.ports[claim.Port] = append(c.ports[claim.Port], claim)
		case claim.Member != "":
			c.members = append(c.members, claim)
		}
	}
	return c
}

// endInterfaceOf finds the owner of an interface by its tag. If the interface has no tag, endInterfaceOf uses a claim
// to exactly this object in this run of VPP. An object without a tag can exist after a crash of the agent
// between the creation and the tagging of the object.
func (o *ownerView) endInterfaceOf(i *observe.Interface, c claims) (h EndInterface, ours bool) {
	tunnel := o.TunnelAt(i.Index)
	if tag, ours := ownership.ParseTag(i.Tag); ours {
		return EndInterface{End: tag.Key, Revision: tag.Revision, Interface: i, Tunnel: tunnel}, true
	}
	var claim ownership.Claim
	var claimed bool
	switch {
	case tunnel != nil:
		if i.Tag == "" && tunnel.Default {
			claim, claimed = c.tunnels[ownership.TunnelOf(tunnel.Tunnel)]
		}
	case i.IsSub():
		if port := o.ByIndex(i.Sup); i.Tag == "" && port != nil {
			claim, claimed = c.subs[ownership.SubInterface{
				Port: port.Name, ID: i.Sub.ID, Tags: i.Sub.Tags, Dot1ad: i.Sub.Dot1ad, Outer: i.Sub.Outer, Inner: i.Sub.Inner,
			}]
		}
	}
	if !claimed {
		return EndInterface{}, false
	}
	return EndInterface{End: claim.Key(), Revision: claim.Revision, Interface: i, Tunnel: tunnel, Claim: &claim}, true
}

// vlanMatch is a key in VPP's tables of VLANs. VPP has at most one sub-interface for each key. The
// exact-match flag is not part of the key.
type vlanMatch struct {
	port         uint32
	tags         uint8
	dot1ad       bool
	anyInner     bool
	outer, inner uint16
}

func vlanMatchOf(sub *observe.Interface) vlanMatch {
	return vlanMatch{port: sub.Sup, tags: sub.Sub.Tags, dot1ad: sub.Sub.Dot1ad, outer: sub.Sub.Outer, inner: sub.Sub.Inner}
}

func vlanMatchFor(port uint32, a intent.Access) vlanMatch {
	return vlanMatch{port: port, tags: uint8(a.Tagging.Tags()), dot1ad: a.Tagging == intent.Dot1ad, outer: a.Outer, inner: a.Inner}
}

// subInterfaces finds the sub-interfaces of ports by the frames that they take. For an access, it has to
// compare only a few sub-interfaces, regardless of their total number.
type subInterfaces struct {
	// byPlace contains the sub-interfaces that take given VLANs, and the sub-interfaces that take a given outer
	// VLAN with any inner VLAN.
	byPlace map[vlanMatch]*observe.Interface
	// underOuter contains the sub-interfaces that take two given VLANs, by port and outer VLAN.
	underOuter map[vlanMatch][]*observe.Interface
	// others contains, for each port, the sub-interfaces that do not select frames by given VLANs: "default",
	// "untagged", by MAC address, and any outer VLAN.
	others map[uint32][]*observe.Interface
}

func newSubInterfaces(size int) *subInterfaces {
	return &subInterfaces{
		byPlace:    make(map[vlanMatch]*observe.Interface, size),
		underOuter: make(map[vlanMatch][]*observe.Interface), others: make(map[uint32][]*observe.Interface),
	}
}

func (s *subInterfaces) add(i *observe.Interface) {
	place := vlanMatchOf(i)
	switch i.Sub.Selection {
	case observe.ByVLANs:
		s.byPlace[place] = i
		if place.tags == 2 {
			place.inner = 0
			s.underOuter[place] = append(s.underOuter[place], i)
		}
	case observe.AnyInner:
		place.anyInner, place.inner = true, 0
		s.byPlace[place] = i
	default:
		s.others[i.Sup] = append(s.others[i.Sup], i)
	}
}

// at returns the sub-interface with exactly the VLANs of the access, or nil if there is none.
func (s *subInterfaces) at(port uint32, a intent.Access) *observe.Interface {
	return s.byPlace[vlanMatchFor(port, a)]
}

// overlapping returns the sub-interfaces of a port that take any frame of the access. The order is: the
// sub-interface with the same VLANs, the less specific sub-interfaces, the more specific sub-interfaces.
func (s *subInterfaces) overlapping(port uint32, a intent.Access) iter.Seq[*observe.Interface] {
	return func(yield func(*observe.Interface) bool) {
		frames := a.Frames()
		same := vlanMatchFor(port, a)
		anyInner := vlanMatch{port: port, tags: 2, dot1ad: same.dot1ad, anyInner: true, outer: a.Outer}
		single := vlanMatch{port: port, tags: 1, dot1ad: same.dot1ad, outer: a.Outer}
		places := []vlanMatch{same, single, anyInner}
		for n, place := range places {
			existing := s.byPlace[place]
			if existing == nil || slices.Contains(places[:n], place) || !existing.Sub.Frames().Overlap(frames) {
				continue
			}
			if !yield(existing) {
				return
			}
		}
		for _, existing := range s.others[port] {
			if existing.Sub.Frames().Overlap(frames) && !yield(existing) {
				return
			}
		}
		if frames.Rank == intent.TwoVLANs {
			return
		}
		under := vlanMatch{port: port, tags: 2, dot1ad: same.dot1ad, outer: a.Outer}
		for _, existing := range s.underOuter[under] {
			if existing.Sub.Frames().Overlap(frames) && !yield(existing) {
				return
			}
		}
	}
}
