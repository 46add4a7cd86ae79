package converge

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/vpp"
)

type wire struct {
	encapsulation intent.Encapsulation
	family        int
	greKey        uint32
}

var wires = []wire{
	{intent.L2XC, 0, 0}, {intent.VXLAN, 4, 0}, {intent.VXLAN, 6, 0}, {intent.GENEVE, 4, 0}, {intent.GENEVE, 6, 0},
	{intent.GRE, 4, 0}, {intent.GRE, 6, 0}, {intent.GRE, 4, 1<<32 - 1}, {intent.GRE, 6, 100},
}

// wires returns the transports that this VPP supports.
func (r *router) wires() []wire {
	r.t.Helper()
	keys := r.can(observe.CanGREKeys)
	return slices.DeleteFunc(slices.Clone(wires), func(w wire) bool { return w.greKey != 0 && !keys })
}

// name returns the name, such as "vxlan4" or "gre4 with the key 100".
func (w wire) name() string {
	name := fmt.Sprint(w.encapsulation, w.family)
	if w.greKey != 0 {
		name += fmt.Sprint(" with the key ", w.greKey)
	}
	return name
}

func accessOf(t intent.Tagging, port string) intent.Access {
	a := intent.Access{Interface: port, Tagging: t, Exact: true}
	if t.Tags() >= 1 {
		a.Outer = 100
	}
	if t.Tags() == 2 {
		a.Inner = 7
	}
	return a
}

// ends returns the ends on this router of one VLL of that kind.
func (r *router) ends(w wire, t intent.Tagging) []intent.End {
	end := intent.End{
		Key: intent.Key{VLL: vllID(1), End: "a"}, Revision: 1, AdminUp: true, Frame: 9018, Access: accessOf(t, r.ports[0]),
		Tunnel: intent.Tunnel{Encapsulation: w.encapsulation, Local: locals[w.family], Remote: remotes[w.family], GREKey: w.greKey},
	}
	switch w.encapsulation {
	case intent.VXLAN, intent.GENEVE:
		end.Tunnel.VNI = 70001
	case intent.L2XC:
		other := end
		other.End, other.Access.Interface = "z", r.ports[1]
		return []intent.End{end, other}
	}
	return []intent.End{end}
}

func TestEveryEncapsulationAndTaggingConvergesOnceAndIsRemovedCompletely(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		for _, w := range r.wires() {
			for _, tagging := range []intent.Tagging{intent.Untagged, intent.Dot1q, intent.QinQ, intent.Dot1ad} {
				t.Run(fmt.Sprintf("%s/%s", w.name(), tagging), func(t *testing.T) {
					before := comparable(r.snapshot())
					ends := r.ends(w, tagging)
					r.put(ends).mustAllBe(t, "verified")
					writes := r.writes()
					r.put(ends).mustAllBe(t, "verified")
					if again := r.writes() - writes; again != 0 {
						t.Errorf("the second converge wrote %d messages", again)
					}
					r.mustForward(t, ends)
					var gone []intent.Tombstone
					for _, e := range ends {
						gone = append(gone, tombstone(e))
					}
					r.put(nil, gone...).mustAllBe(t, "removed")
					if after := comparable(r.snapshot()); !reflect.DeepEqual(after, before) {
						t.Errorf("left behind:\n got %+v\nwant %+v", after, before)
					}
				})
			}
		}
	})
}

// comparable returns a snapshot without indices and lookups, which may differ between equal states.
func comparable(s *observe.Snapshot) map[string]string {
	flat := make(map[string]string)
	for _, i := range s.Interfaces {
		same := *i
		if s.TunnelAt(i.Index) != nil {
			same.MAC = [6]byte{} // VPP chooses a random one for each new tunnel
		}
		flat[i.Name] = fmt.Sprintf("%+v", same)
	}
	flat["connects"] = fmt.Sprint(s.Connects)
	flat["tunnels"] = fmt.Sprint(len(s.Tunnels))
	return flat
}

// mustForward checks the requirements of the customer's frames: cross-connected in both directions, up,
// tags popped, MTU.
func (r *router) mustForward(t *testing.T, ends []intent.End) {
	t.Helper()
	s := r.snapshot()
	for _, h := range owned(r, ends) {
		if !h.AdminUp {
			t.Errorf("%s is down", h.Name)
		}
		to, connected := s.Connects[h.Index]
		if !connected || s.Connects[to] != h.Index {
			t.Errorf("%s is not cross-connected both ways", h.Name)
		}
		if h.IsSub() && h.Rewrite != uint32(2+h.Sub.Tags) {
			t.Errorf("%s rewrites %d with %d tags", h.Name, h.Rewrite, h.Sub.Tags)
		}
		if h.Device == "GRE tunnel device" && h.L3MTU < 9018 {
			t.Errorf("%s drops frames longer than %d", h.Name, h.L3MTU)
		}
	}
}

func owned(r *router, ends []intent.End) []*observe.Interface {
	r.t.Helper()
	in, _ := r.store.Current()
	todo, _, err := r.Plan(r.t.Context(), in)
	if err != nil {
		r.t.Fatal(err)
	}
	if len(todo.Owned) != 2 {
		r.t.Errorf("%d interfaces are owned, want 2", len(todo.Owned))
	}
	var found []*observe.Interface
	for _, h := range todo.Owned {
		found = append(found, h.Interface)
	}
	return found
}

func TestVLLsAreBuiltAndRemovedWithoutAStatsSegment(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		session, err := vpp.Dialer{Socket: r.api, Timeout: realvpp.ReplyTimeout}.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(session.Close)
		r.Attach(session)
		end := vxlanEnd(1, r.ports[0])
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		r.put(nil, tombstone(end)).mustAllBe(t, "removed")
	})
}

func TestIntentIsStoredWithoutVPP(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.Attach(nil)
		end := vxlanEnd(1, r.ports[0])
		outcome := r.put([]intent.End{end})
		if e := outcome.of(t, end.Key); outcome.Applied || e.Status != "pending" || e.Reason.Code != "vpp_unavailable" {
			t.Errorf("got %+v %+v", e, e.Reason)
		}
		r.Attach(r.session)
		r.Converge(t.Context()).mustAllBe(t, "verified")
	})
}
