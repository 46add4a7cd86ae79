package converge

import (
	"fmt"
	"slices"
	"testing"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
)

// TestAnInPlaceChangeSendsNothingAboutOthersAndNothingThatStopsFrames counts the messages by interface. What
// changes in place must not be taken out of its cross-connect, deleted or made again, and no message may be
// about another VLL.
func TestAnInPlaceChangeSendsNothingAboutOthersAndNothingThatStopsFrames(t *testing.T) {
	gre := func(e *intent.End) {
		e.Tunnel.Encapsulation, e.Tunnel.VNI = intent.GRE, 0
	}
	port := func(r *router, e *intent.End) {
		e.Access = accessOf(intent.Untagged, r.ports[1])
		e.Bandwidth = profile
	}
	for name, c := range map[string]struct {
		first  func(*router, *intent.End)
		change func(*intent.End)
		allow  []string
	}{
		"revision":  {nil, func(*intent.End) {}, nil},
		"down":      {nil, func(e *intent.End) { e.AdminUp = false }, []string{"sw_interface_set_flags"}},
		"up":        {func(_ *router, e *intent.End) { e.AdminUp = false }, func(e *intent.End) { e.AdminUp = true }, []string{"sw_interface_set_flags"}},
		"frame":     {nil, func(e *intent.End) { e.Frame = 9500 }, nil},
		"GRE frame": {func(_ *router, e *intent.End) { gre(e) }, func(e *intent.End) { e.Frame = 9500 }, []string{"sw_interface_set_mtu"}},
		"rate":      {port, func(e *intent.End) { e.Bandwidth.CIR *= 2 }, nil},
		"profile away, and what it was applied to stays": {port, func(e *intent.End) { e.Bandwidth = intent.Bandwidth{} }, []string{"policer_input"}},
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

// indicesOf are the interfaces that the end holds.
func (r *router) indicesOf(key intent.Key) []uint32 {
	r.t.Helper()
	held, _ := r.store.Held()
	todo, _, err := r.Plan(r.t.Context(), held)
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
		r.t.Fatal(fmt.Sprint("holds ", indices))
	}
	return indices
}
