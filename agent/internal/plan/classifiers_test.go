package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
)

func TestAVLANIsPolicedByATableThatMatchesAllItsFrames(t *testing.T) {
	m := newModel(t)
	m.s.Policing = observe.ClassifierPolicing
	e := end(1, withProfile)
	name, zeros := ownership.PolicerName(e.Key), strings.Repeat("0", 30)
	mark := ownership.TableMark(e.Key)
	made := lines(m.diff(want(e)).Ops)
	for _, line := range []string{
		"create: policer add name " + name + " type 1r2c rate kbps cir 1000 cb 64000 conform-action transmit exceed-action transmit violate-action drop",
		fmt.Sprintf("create: classify table mask hex 01%s buckets 2 memory-size 1M miss-next %d", zeros, mark),
		"set: classify session policer-hit-next " + name + " table-index <new for cust0.101> match hex 00" + zeros,
		"set: classify session policer-hit-next " + name + " table-index <new for cust0.101> match hex 01" + zeros,
		"police: set policer classify interface cust0.101 l2-table <new for cust0.101>",
	} {
		at := slices.Index(made, line)
		if at < 0 {
			t.Fatalf("%q is missing or comes too soon in\n%s", line, strings.Join(made, "\n"))
		}
		made = made[at+1:]
	}
	if left := m.settle(t, want(e)); !left.Policed[e.Key] {
		t.Error("not policed")
	}
	table := m.s.Bound[m.s.ByName("cust0.101").Index]
	gone := lines(m.diff(m.without(e)).Ops)
	if first := fmt.Sprintf("detach: set policer classify interface cust0.101 l2-table %d del", table); gone[0] != first {
		t.Errorf("first %q, want %q", gone[0], first)
	}
	if last, want := gone[len(gone)-2:], []string{
		fmt.Sprintf("delete: classify table del table %d", table), fmt.Sprintf("delete: policer del index %d", m.s.Policers[name].Index),
	}; !slices.Equal(last, want) {
		t.Errorf("last %q, want %q", last, want)
	}
	m.settle(t, m.without(e))
}

func TestAWholePortIsPolicedWithoutATable(t *testing.T) {
	m := newModel(t)
	m.s.Policing = observe.ClassifierPolicing
	e := end(1, withProfile, wholePort("cust1"))
	if left := m.settle(t, want(e)); !left.Policed[e.Key] || len(m.s.Tables) != 0 {
		t.Errorf("policed %v, tables %v", left.Policed[e.Key], m.s.Tables)
	}
}

// TestATableLeftByACrashIsReused: the message that creates a table also sets its mark.
func TestATableLeftByACrashIsReused(t *testing.T) {
	m := newModel(t)
	m.s.Policing = observe.ClassifierPolicing
	e := end(1, withProfile)
	for index := range uint32(2) {
		m.s.Tables[index] = &observe.ClassifyTable{
			Index: index, Mark: ownership.TableMark(e.Key), Hits: [2]uint32{observe.NoIndex, observe.NoIndex},
		}
	}
	m.settle(t, want(e))
	if len(m.s.Tables) != 1 || m.s.Bound[m.s.ByName("cust0.101").Index] != 0 {
		t.Errorf("tables %v, bound %v", m.s.Tables, m.s.Bound)
	}
}

// TestATableOfAnotherEndWithTheSameMarkStays: a mark has 30 bits, so two ends may share one.
func TestATableOfAnotherEndWithTheSameMarkStays(t *testing.T) {
	m := newModel(t)
	m.s.Policing = observe.ClassifierPolicing
	e := end(1, withProfile, func(e *intent.End) { e.VLL = id(28675) })
	other := end(2, withProfile, func(e *intent.End) { e.VLL = id(63569) })
	if ownership.TableMark(e.Key) != ownership.TableMark(other.Key) {
		t.Fatal("the marks differ, and the test shows nothing")
	}
	m.settle(t, want(e, other))
	in := want(e)
	in.Removed = m.without(other).Removed
	left := m.settle(t, in)
	if !left.Policed[e.Key] || len(m.s.Tables) != 1 {
		t.Errorf("policed %v, tables %v", left.Policed, m.s.Tables)
	}
}

// TestAVLANReceivedByMultipleWorkersIsNotReportedAsPoliced: with the classifier, multiple workers may
// overdraw the bucket.
func TestAVLANReceivedByMultipleWorkersIsNotReportedAsPoliced(t *testing.T) {
	m := newModel(t)
	m.s.Policing, m.s.Workers = observe.ClassifierPolicing, 2
	vlan, whole := end(1, withProfile), end(2, withProfile, wholePort("cust1"))
	left := m.settle(t, want(vlan, whole))
	if left.Policed[vlan.Key] || !left.Policed[whole.Key] || len(m.s.Bound) != 1 {
		t.Errorf("policed %v, bound %v", left.Policed, m.s.Bound)
	}
	m.s.OneWorker = map[uint32]bool{m.port("cust0").Index: true}
	if left = m.settle(t, want(vlan, whole)); !left.Policed[vlan.Key] {
		t.Error("not policed although one worker receives all of the port's frames")
	}
}
