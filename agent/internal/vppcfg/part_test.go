package vppcfg

import (
	"net/netip"
	"strings"
	"testing"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/plan"
)

// router is a VPP with the ports cust0 (MTU 9000), cust1 (1500) and tap0.
type router struct {
	s    observe.Snapshot
	todo plan.Plan
	in   intent.Intent
}

func newRouter() *router {
	r := &router{}
	r.s.Connects = make(map[uint32]uint32)
	r.add(observe.Interface{Name: "local0"})
	r.add(observe.Interface{Name: "cust0", Device: "dpdk", L3MTU: 9000, AdminUp: true})
	r.add(observe.Interface{Name: "cust1", Device: "dpdk", L3MTU: 1500, AdminUp: true})
	r.add(observe.Interface{Name: "tap0", Device: "virtio", L3MTU: 1500, AdminUp: true})
	return r
}

func (r *router) add(i observe.Interface) *observe.Interface {
	i.Index = uint32(len(r.s.Interfaces))
	if i.Sub == (observe.SubInterface{}) {
		i.Sup = i.Index
	}
	r.s.Interfaces = append(r.s.Interfaces, &i)
	r.s.Index()
	return &i
}

func (r *router) own(end intent.Key, i *observe.Interface, tunnel *intent.Tunnel) *observe.Interface {
	h := &plan.EndInterface{End: end, Interface: i}
	if tunnel != nil {
		h.Tunnel = &observe.Tunnel{Tunnel: *tunnel, Index: i.Index, Default: true}
	}
	r.todo.Owned = append(r.todo.Owned, h)
	return i
}

// line adds VLAN 101 of a port, and a tunnel with the name.
func (r *router) line(port, name string, t intent.Tunnel) (sub, tunnel *observe.Interface) {
	key := intent.Key{VLL: "6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01", End: "a"}
	r.in.Present = append(r.in.Present, intent.End{Key: key, Frame: 1514})
	sub = r.own(key, r.sub(port), nil)
	t.Local, t.Remote = netip.MustParseAddr("10.255.0.1"), netip.MustParseAddr("10.255.0.2")
	tunnel = r.own(key, r.add(observe.Interface{Name: name, L3MTU: 9000, LinkMTU: 8998, AdminUp: true}), &t)
	r.connect(sub, tunnel)
	return sub, tunnel
}

func (r *router) sub(port string) *observe.Interface {
	return r.add(observe.Interface{Name: port + ".101", Sup: r.s.ByName(port).Index, AdminUp: true,
		Sub: observe.SubInterface{ID: 101, Tags: 1, Outer: 101, Exact: true}})
}

func (r *router) connect(a, b *observe.Interface) {
	r.s.Connects[a.Index], r.s.Connects[b.Index] = b.Index, a.Index
}

func (r *router) part() *Part { return Of(&r.s, &r.todo, &r.in) }

func TestObstacleAppliesToAllInterfacesOfACircuit(t *testing.T) {
	for name, c := range map[string]struct {
		make  func(*router)
		why   string
		stops bool
		names string
	}{
		"GENEVE": {func(r *router) {
			r.line("cust0", "geneve_tunnel0", intent.Tunnel{Encapsulation: intent.GENEVE, VNI: 1})
		},
			"has no GENEVE", true, "cust0.101 geneve_tunnel0"},
		"GRE on a port with a smaller MTU": {func(r *router) { r.line("cust1", "gre0", intent.Tunnel{Encapsulation: intent.GRE}) },
			"its MTU is 8998 and that of the line's port 1500", true, "cust1.101 gre0"},
		"GRE with frames larger than vppcfg would leave": {func(r *router) {
			r.line("cust0", "gre0", intent.Tunnel{Encapsulation: intent.GRE})
			r.in.Present[0].Frame = 9000
		}, "frames of 9000 bytes are promised", true, "cust0.101 gre0"},
		"a sub-interface of a TAP": {func(r *router) { r.line("tap0", "vxlan_tunnel0", intent.Tunnel{Encapsulation: intent.VXLAN, VNI: 1}) },
			"physical ports and bonds alone", false, "tap0.101 vxlan_tunnel0"},
		"a port without an MTU": {func(r *router) {
			r.s.ByName("cust1").L3MTU = 0
			r.line("cust1", "vxlan_tunnel0", intent.Tunnel{Encapsulation: intent.VXLAN, VNI: 1})
		}, "an MTU of 128 to 9216 bytes", false, "cust1.101 vxlan_tunnel0"},
		"two whole ports with different MTUs": {func(r *router) {
			end := intent.Key{VLL: "6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01", End: "a"}
			r.connect(r.own(end, r.s.ByName("cust0"), nil), r.own(end.Other(), r.s.ByName("cust1"), nil))
		}, "the same MTU on both sides", false, "cust0 cust1"},
		"a VNI that another tunnel has": {func(r *router) {
			r.line("cust0", "vxlan_tunnel0", intent.Tunnel{Encapsulation: intent.VXLAN, VNI: 1})
			r.line("cust1", "vxlan_tunnel1", intent.Tunnel{Encapsulation: intent.VXLAN, VNI: 1})
		}, "each VNI once, and vxlan_tunnel0 has 1", false, "cust1.101 vxlan_tunnel1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRouter()
			c.make(r)
			part := r.part()
			var names []string
			for _, u := range part.Unnamed {
				names = append(names, u.Name)
				if !strings.Contains(u.Why, c.why) || u.Stops != c.stops {
					t.Errorf("%+v", u)
				}
			}
			if strings.Join(names, " ") != c.names {
				t.Errorf("unnamed are %q", names)
			}
			for _, i := range part.Interfaces {
				if strings.Contains(c.names, i.Name) {
					t.Errorf("%s is named all the same", i.Name)
				}
			}
			text, err := part.Text()
			if err != nil || !strings.Contains(string(text), "# NOT NAMED: "+strings.Fields(c.names)[0]+" of line ") {
				t.Errorf("%v\n%s", err, text)
			}
		})
	}
}

func TestInterfacesWithAForeignLabelAreNamed(t *testing.T) {
	r := newRouter()
	r.line("cust0", "vxlan_tunnel0", intent.Tunnel{Encapsulation: intent.VXLAN, VNI: 1})
	r.todo.Relabelled, r.todo.Owned = r.todo.Owned, nil
	if part := r.part(); len(part.Interfaces) != 2 || len(part.Tunnels) != 1 {
		t.Errorf("%+v", part)
	}
}

func TestPortIsMarkedWhileTheFarEndsLinkKeepsItDown(t *testing.T) {
	for _, up := range []bool{false, true} {
		r := newRouter()
		key := intent.Key{VLL: "6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01", End: "a"}
		r.own(key, r.s.ByName("cust0"), nil).AdminUp = up
		r.todo.StandingClaims = []ownership.Claim{{VLL: key.VLL, End: key.End, Port: "cust0", LinkLoss: true}}
		if part := r.part(); part.Interfaces[0].ShutDown == up {
			t.Errorf("admin up %t: %+v", up, part.Interfaces[0])
		}
	}
}

// Covers a tunnel without an incoming cross-connect, and a line in one direction only.
func TestCrossConnectInOneDirectionIsNamed(t *testing.T) {
	r := newRouter()
	_, tunnel := r.line("cust0", "vxlan_tunnel0", intent.Tunnel{Encapsulation: intent.VXLAN, VNI: 1})
	delete(r.s.Connects, tunnel.Index)
	part := r.part()
	if part.Interfaces[0].L2XC != "vxlan_tunnel0" || part.Interfaces[1].L2XC != "" {
		t.Errorf("%+v", part.Interfaces)
	}
}
