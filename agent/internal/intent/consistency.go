package intent

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// checkConsistency checks the rules between entries. An entry whose own fields are wrong takes part only as far
// as its key is known, so that one mistake is not reported twice.
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
			fail(p.pointer, "duplicate_end", "%s stands at %s already", p.entry.Key, first.pointer)
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
			fail(r.pointer, "duplicate_end", "%s stands at %s already", r.entry.Key, first)
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

func checkAccessOverlaps(present []placed[End], fail failure) {
	type key struct {
		port         string
		tagging      Tagging
		outer, inner uint16
	}
	taken := make(map[key]string, len(present))
	wholePort, anyVLAN := make(map[string]string), make(map[string]string)
	for i := range present {
		p := &present[i]
		if !p.valid || p.entry.IsProbe() {
			continue
		}
		a := p.entry.Access
		at := p.pointer + "/access"
		k := key{a.Interface, a.Tagging, a.Outer, a.Inner}
		whole, isWhole := wholePort[a.Interface]
		vlan, isVLAN := anyVLAN[a.Interface]
		if first, twice := taken[k]; twice {
			fail(at, "access_overlap", "the same frames of %s belong to %s", a.Interface, first)
		} else if isWhole {
			fail(at, "access_overlap", "the whole port %s belongs to %s", a.Interface, whole)
		} else if a.Tagging == Untagged && isVLAN {
			fail(at, "access_overlap", "a VLAN of %s belongs to %s", a.Interface, vlan)
		}
		taken[k] = p.pointer
		if a.Tagging == Untagged {
			wholePort[a.Interface] = p.pointer
		} else {
			anyVLAN[a.Interface] = p.pointer
		}
	}
}

// Identity is a tunnel as VPP tells tunnels apart (vxlan.h, geneve.h, gre.h): not every field counts.
type Identity struct {
	Encapsulation Encapsulation
	Local, Remote netip.Addr
	VNI           uint32
	GREKey        uint32
	Table         uint32
}

// Identity leaves out what VPP's lookup key leaves out: VXLAN over IPv6 and GENEVE omit the local address, GENEVE the
// table too.
func (t Tunnel) Identity() Identity {
	id := Identity(t)
	if t.Encapsulation == GENEVE || t.Encapsulation == VXLAN && t.Remote.Is6() {
		id.Local = netip.Addr{}
	}
	if t.Encapsulation == GENEVE {
		id.Table = 0
	}
	return id
}

func checkTunnelOverlaps(present []placed[End], fail failure) {
	taken := make(map[Identity]string, len(present))
	for i := range present {
		p := &present[i]
		if !p.valid || p.entry.Tunnel.Encapsulation == L2XC {
			continue
		}
		id := p.entry.Tunnel.Identity()
		if first, twice := taken[id]; twice {
			fail(p.pointer+"/transport", "tunnel_overlap", "VPP cannot tell this tunnel from that of %s", first)
			continue
		}
		taken[id] = p.pointer
	}
}

// comparePointers orders /present/2 before /present/10.
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
