package plan

import (
	"iter"
	"slices"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
)

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
