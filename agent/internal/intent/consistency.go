package intent

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"longline.dev/agent/internal/tunnel"
)

// checkConsistency checks the rules that compare entries. If an entry has invalid fields, checkConsistency
// uses at most the entry's key, and only if the key is valid. So one mistake is not reported twice.
func checkConsistency(present []placed[End], removed []placed[Tombstone]) []Error {
	var errors []Error
	fail := func(pointer, code, format string, args ...any) {
		errors = append(errors, Error{Pointer: pointer, Code: code, Detail: fmt.Sprintf(format, args...)})
	}
	ends := make(map[Key]*placed[End], len(present))
	for i := range present {
		p := &present[i]
		if !p.keyed {
			continue
		}
		if first, twice := ends[p.entry.Key]; twice {
			fail(p.pointer, "duplicate_end", "%s is at %s already", p.entry.Key, first.pointer)
			continue
		}
		ends[p.entry.Key] = p
	}
	gone := make(map[Key]string)
	for _, r := range removed {
		if !r.keyed {
			continue
		}
		if first, twice := gone[r.entry.Key]; twice {
			fail(r.pointer, "duplicate_end", "%s is at %s already", r.entry.Key, first)
			continue
		}
		gone[r.entry.Key] = r.pointer
		if p, both := ends[r.entry.Key]; both {
			fail(r.pointer, "present_and_removed", "%s is present at %s", r.entry.Key, p.pointer)
		}
	}
	for i := range present {
		p := &present[i]
		if !p.keyed || p.entry.Tunnel.Encapsulation != L2XC {
			continue
		}
		if other := ends[p.entry.Other()]; other == nil || other.entry.Tunnel.Encapsulation != L2XC {
			fail(p.pointer, "l2xc_needs_both_ends", "the other end is not present with l2xc")
		}
	}
	checkAccessOverlaps(present, fail)
	checkTunnelOverlaps(present, fail)
	slices.SortStableFunc(errors, func(a, b Error) int { return comparePointers(a.Pointer, b.Pointer) })
	return errors
}

type failure = func(pointer, code, format string, args ...any)

// checkAccessOverlaps refuses two accesses of one port that share frames. VPP refuses the second of two equal
// sub-interfaces. If two different sub-interfaces share frames, VPP gives these frames to the more specific
// one.
func checkAccessOverlaps(present []placed[End], fail failure) {
	taken := make(map[string]*portAccesses)
	for i := range present {
		p := &present[i]
		if !p.valid || p.entry.IsProbe() {
			continue
		}
		a := p.entry.Access
		port := taken[a.Interface]
		if port == nil {
			port = &portAccesses{byVLAN: make(map[vlans]*placed[End])}
			taken[a.Interface] = port
		}
		if first := port.overlapping(a); first != nil {
			at := p.pointer + "/access"
			switch {
			case first.entry.Access.Tagging == a.Tagging:
				fail(at, "access_overlap", "the same frames of %s belong to %s", a.Interface, first.pointer)
			case first.entry.Access.Tagging == Untagged:
				fail(at, "access_overlap", "the whole port %s belongs to %s", a.Interface, first.pointer)
			case a.Tagging == Untagged:
				fail(at, "access_overlap", "a VLAN of %s belongs to %s", a.Interface, first.pointer)
			default:
				fail(at, "access_overlap", "frames of %s with VLAN %d and further tags belong to %s", a.Interface, a.Outer, first.pointer)
			}
			continue
		}
		port.add(p)
	}
}

// portAccesses contains the accesses of one port. It has indexes, so that another access is compared with
// only a few of them.
type portAccesses struct {
	whole, first *placed[End] // first is any access to a VLAN of the port
	byVLAN       map[vlans]*placed[End]
}

// vlans is an access's key in VPP's tables of VLANs. An access with two tags has one entry with its inner
// VLAN, and one entry with the inner VLAN 0. The second entry is for the comparison with a less specific
// access.
type vlans struct {
	dot1ad       bool
	tags         uint8
	outer, inner uint16
}

func placesOf(a Access) (own, underOuter vlans) {
	tags := uint8(a.Tagging.Tags())
	own = vlans{a.Tagging == Dot1ad, tags, a.Outer, a.Inner}
	underOuter = own
	underOuter.inner = 0
	return own, underOuter
}

func (p *portAccesses) overlapping(a Access) *placed[End] {
	if p.whole != nil {
		return p.whole
	}
	if a.Tagging == Untagged {
		return p.first
	}
	own, _ := placesOf(a)
	dot1ad := a.Tagging == Dot1ad
	for _, place := range []vlans{own, {dot1ad, 1, a.Outer, 0}, {dot1ad, 2, a.Outer, 0}} {
		if other := p.byVLAN[place]; other != nil && other.entry.Access.Frames().Overlap(a.Frames()) {
			return other
		}
	}
	return nil
}

func (p *portAccesses) add(end *placed[End]) {
	if end.entry.Access.Tagging == Untagged {
		p.whole = end
		return
	}
	p.first = end
	own, underOuter := placesOf(end.entry.Access)
	p.byVLAN[own], p.byVLAN[underOuter] = end, end
}

func checkTunnelOverlaps(present []placed[End], fail failure) {
	taken := make(map[tunnel.Identity]string, len(present))
	for i := range present {
		p := &present[i]
		if !p.valid || p.entry.Tunnel.Encapsulation == L2XC {
			continue
		}
		id := p.entry.Tunnel.Identity()
		if first, twice := taken[id]; twice {
			fail(p.pointer+"/transport", "tunnel_overlap", "VPP cannot distinguish this tunnel from that of %s", first)
			continue
		}
		taken[id] = p.pointer
	}
}

// comparePointers compares two JSON pointers. It compares numbers by their value, so /present/2 comes before
// /present/10.
func comparePointers(a, b string) int {
	as, bs := strings.Split(a, "/"), strings.Split(b, "/")
	return slices.CompareFunc(as, bs, func(x, y string) int {
		i, errX := strconv.Atoi(x)
		j, errY := strconv.Atoi(y)
		if errX == nil && errY == nil {
			return cmp.Compare(i, j)
		}
		return cmp.Compare(x, y)
	})
}
