package plan

import (
	"fmt"
	"testing"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/ownership"
)

// BenchmarkDiffOfAThousandEnds measures the comparison after each reading of VPP, and after a restart of
// VPP.
func BenchmarkDiffOfAThousandEnds(b *testing.B) {
	m := newModel(b)
	in := want()
	for n := range 1000 {
		in.Present = append(in.Present, end(n, func(e *intent.End) { e.Access.Outer = uint16(1 + n) }))
	}
	m.carryOut(m.diff(in).Ops)
	for name, want := range map[string]*intent.Intent{"nothing to do": in, "everything to do": want(in.Present...)} {
		state := m
		if name == "everything to do" {
			state = newModel(b)
		}
		b.Run(fmt.Sprint(name), func(b *testing.B) {
			for b.Loop() {
				state.diff(want)
			}
		})
	}
}

// BenchmarkDiffForOneOfAThousandEnds measures the planning for one VLL. It runs twice for each change that
// is small enough to be planned alone.
func BenchmarkDiffForOneOfAThousandEnds(b *testing.B) {
	m := newModel(b)
	in := want()
	for n := range 1000 {
		in.Present = append(in.Present, end(n, func(e *intent.End) { e.Access.Outer = uint16(1 + n) }))
	}
	m.carryOut(m.diff(in).Ops)
	clean, journal := m.diff(in), ownership.Journal{Boot: m.s.Boot}
	for b.Loop() {
		clean.ReplanFor(map[string]bool{id(7): true})(in, m.s, journal, nil)
	}
}

// BenchmarkTaggedOfAThousandEnds measures the search for changed tags, which runs once for each change of
// one VLL. It finds no change.
func BenchmarkTaggedOfAThousandEnds(b *testing.B) {
	m := newModel(b)
	in := want()
	for n := range 1000 {
		in.Present = append(in.Present, end(n, func(e *intent.End) { e.Access.Outer = uint16(1 + n) }))
	}
	m.carryOut(m.diff(in).Ops)
	p := m.diff(in)
	known, _ := p.TagChanges(m.s, nil)
	if len(known) != 2000 {
		b.Fatalf("%d are tagged", len(known))
	}
	for b.Loop() {
		if marked, gone := p.TagChanges(m.s, known); len(marked)+len(gone) != 0 {
			b.Fatalf("changes: %v, %v", marked, gone)
		}
	}
}
