package converge

import (
	"fmt"
	"slices"
	"testing"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
)

// TestInPlaceChangeDoesNotInterruptLines counts the messages by interface. The changed line must not be
// removed from its cross-connect, deleted or created again, and no message may concern another VLL.
func TestInPlaceChangeDoesNotInterruptLines(t *testing.T) {
	gre := func(e *intent.End) {
		e.Tunnel.Encapsulation, e.Tunnel.VNI = intent.GRE, 0
	}
	// Frames of a loopback bypass the policer node, so a VPP with classifiers polices them by classifier.
	byTable := func(r *router, e *intent.End) {
		e.Access = accessOf(intent.Untagged, r.ports[1])
		e.Bandwidth = profile
	}
	byNode := func(r *router, e *intent.End) {
		e.Access = accessOf(intent.Untagged, r.generatedPort(7))
		e.Bandwidth = profile
	}
	withoutProfile := func(e *intent.End) { e.Bandwidth = intent.Bandwidth{} }
	for name, c := range map[string]struct {
		first  func(*router, *intent.End)
		change func(*intent.End)
		allow  []string
	}{
		"revision":                 {nil, func(*intent.End) {}, nil},
		"down":                     {nil, func(e *intent.End) { e.AdminUp = false }, []string{"sw_interface_set_flags"}},
		"up":                       {func(_ *router, e *intent.End) { e.AdminUp = false }, func(e *intent.End) { e.AdminUp = true }, []string{"sw_interface_set_flags"}},
		"frame":                    {nil, func(e *intent.End) { e.Frame = 9500 }, nil},
		"GRE frame":                {func(_ *router, e *intent.End) { gre(e) }, func(e *intent.End) { e.Frame = 9500 }, []string{"sw_interface_set_mtu"}},
		"rate of a port, by table": {byTable, func(e *intent.End) { e.Bandwidth.CIR *= 2 }, nil},
		"rate of a port, by node":  {byNode, func(e *intent.End) { e.Bandwidth.CIR *= 2 }, nil},
		// From 26.06 on, the node polices every port.
		"profile away, by table": {byTable, withoutProfile, []string{"policer_classify_set_interface", "policer_input"}},
		"profile away, by node":  {byNode, withoutProfile, []string{"policer_input"}},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryVPP(t, func(t *testing.T, r *router) {
				var ends []intent.End
				for n := range 10 {
					ends = append(ends, vxlanEnd(n, r.ports[0]))
				}
				changed := &ends[4]
				if c.first != nil {
					c.first(r, changed)
				}
				r.put(ends).mustAllBe(t, "verified")
				own := r.indicesOf(changed.Key)
				session := record(r.session)
				r.Attach(session)
				changed.Revision++
				c.change(changed)
				r.put(ends).mustAllBe(t, "verified")
				for index, messages := range session.touched {
					if !slices.Contains(own, index) {
						t.Errorf("interface %d is not the VLL's and got %v", index, messages)
					}
					for _, message := range messages {
						if message != "sw_interface_tag_add_del" && !slices.Contains(c.allow, message) {
							t.Errorf("interface %d got %s", index, message)
						}
					}
				}
				if len(session.touched) == 0 {
					t.Error("nothing was sent at all: not even the tags name the new revision")
				}
			})
		})
	}
}

// indicesOf returns the interfaces of the end.
func (r *router) indicesOf(key intent.Key) []uint32 {
	r.t.Helper()
	stored, _ := r.store.Current()
	todo, _, err := r.Plan(r.t.Context(), stored)
	if err != nil {
		r.t.Fatal(err)
	}
	var indices []uint32
	for _, h := range todo.Owned {
		if h.End == key {
			indices = append(indices, h.Interface.Index)
		}
	}
	if len(indices) != 2 || slices.Contains(indices, observe.NoIndex) {
		r.t.Fatal(fmt.Sprint("has ", indices))
	}
	return indices
}
