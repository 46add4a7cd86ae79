// Package vppcfg describes the agent's interfaces in the format of vppcfg's file (git.ipng.ch/ipng/vppcfg).
// It is needed because vppcfg removes interfaces that its file does not name. The comments about vppcfg's
// behaviour apply to version 0.0.7.
package vppcfg

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/plan"
	"longline.dev/agent/internal/tunnel"
)

// Part lists what a file of vppcfg has to name, and what such a file cannot name.
type Part struct {
	Tunnels    []Tunnel    `json:"vxlan_tunnels"` // sorted by index
	Interfaces []Interface `json:"interfaces"`    // sorted by index, including the VXLAN tunnels
	Unnamed    []Unnamed   `json:"unnamed"`       // sorted by index
}

// Tunnel is an entry of vxlan_tunnels.
type Tunnel struct {
	Name   string `json:"name"`
	VLL    string `json:"vll"`
	End    string `json:"end"`
	Local  string `json:"local"`
	Remote string `json:"remote"`
	VNI    uint32 `json:"vni"`
}

// Interface is an entry of interfaces, or of sub-interfaces if SubID is not 0. A whole port belongs to the
// operator. Its entry has only the cross-connect and, while its line is suspended or the far end has lost
// its link, the state.
type Interface struct {
	Name  string `json:"name"`
	VLL   string `json:"vll"`
	End   string `json:"end"`
	Kind  string `json:"kind"` // subif, port, vxlan or gre
	Port  string `json:"port"` // of a sub-interface
	SubID uint32 `json:"sub_id"`

	Dot1q      uint16 `json:"dot1q"` // 0 for no tag, also in the next two fields
	Dot1ad     uint16 `json:"dot1ad"`
	InnerDot1q uint16 `json:"inner_dot1q"`
	Exact      bool   `json:"exact_match"`

	L2XC    string `json:"l2xc"` // destination of its cross-connect; "" during an activation test of its line, and for a probe
	MTU     uint32 `json:"mtu"`
	MTUNow  uint32 `json:"mtu_now"` // in VPP; if it differs from MTU, vppcfg's plan changes it
	AdminUp bool   `json:"admin_up"`
	// ShutDown reports that the port is down because the far end has lost its link. The port comes up again
	// together with that link.
	ShutDown bool `json:"held_down"`
}

// Unnamed is an interface that vppcfg's file cannot describe with its present settings.
type Unnamed struct {
	Name string `json:"name"`
	VLL  string `json:"vll"`
	End  string `json:"end"`
	Why  string `json:"why"`
	// Stops reports that vppcfg makes no plan for a VPP with such an interface. Otherwise vppcfg's plan
	// removes the interface.
	Stops bool `json:"stops"`
}

// Range of an MTU in vppcfg's schema (bytes).
const leastMTU, mostMTU = 128, 9216

// obstacle is the reason why vppcfg cannot name an interface.
type obstacle struct {
	why   string
	stops bool
}

// circuit is a group of interfaces that are connected to each other by cross-connects. A probe's tunnel is a
// circuit with one interface.
type circuit []*plan.EndInterface

// Of returns the part for the interfaces in the snapshot that the plan assigns to the agent, including
// relabelled interfaces. The intent gives the frame sizes that lines promise.
func Of(s *observe.Snapshot, todo *plan.Plan, in *intent.Intent) *Part {
	p := &Part{Tunnels: []Tunnel{}, Interfaces: []Interface{}, Unnamed: []Unnamed{}}
	ours := slices.Concat(todo.Owned, todo.Relabelled)
	slices.SortFunc(ours, func(a, b *plan.EndInterface) int { return int(int64(a.Interface.Index) - int64(b.Interface.Index)) })
	named := make(map[uint32]string) // VNI -> tunnel
	frames := make(map[intent.Key]uint32, len(in.Present))
	for _, end := range in.Present {
		frames[end.Key] = uint32(end.Frame)
	}
	kept := todo.ShutDown()
	for _, c := range circuitsOf(s, ours) {
		mtu, in := mtuOf(s, c, frames)
		for _, h := range c {
			if o := obstacleOf(s, h, named); o != nil && (in == nil || o.stops && !in.stops) {
				in = o
			}
		}
		for _, h := range c {
			i := h.Interface
			if in != nil {
				p.Unnamed = append(p.Unnamed, Unnamed{i.Name, h.End.VLL, h.End.End, in.why, in.stops})
				continue
			}
			entry := interfaceOf(s, h, mtu)
			entry.ShutDown = !i.AdminUp && kept[h.End] == i.Name
			p.Interfaces = append(p.Interfaces, entry)
			if formOf(h) == tunnel.AsTunnel {
				named[h.Tunnel.VNI] = i.Name
				p.Tunnels = append(p.Tunnels, Tunnel{i.Name, h.End.VLL, h.End.End, h.Tunnel.Local.String(), h.Tunnel.Remote.String(), h.Tunnel.VNI})
			}
		}
	}
	return p
}

// circuitsOf keeps the order of the interfaces.
func circuitsOf(s *observe.Snapshot, ours []*plan.EndInterface) (all []circuit) {
	senders := make(map[uint32][]uint32, len(ours))
	for from, to := range s.Connects {
		senders[to] = append(senders[to], from)
	}
	at := make(map[uint32]int, len(ours)) // interface -> place in all
	for _, h := range ours {
		index, place := h.Interface.Index, len(all)
		to, connected := s.Connects[index]
		if other, known := at[to]; connected && known {
			place = other
		}
		for _, from := range senders[index] {
			if other, known := at[from]; known {
				place = other
			}
		}
		if place == len(all) {
			all = append(all, nil)
		}
		all[place] = append(all[place], h)
		at[index] = place
	}
	return all
}

// obstacleOf returns nil if vppcfg can name the interface. named has the VNIs of the tunnels that the part
// already names, with the names of these tunnels.
func obstacleOf(s *observe.Snapshot, h *plan.EndInterface, named map[uint32]string) *obstacle {
	switch formOf(h) {
	case tunnel.Unnamed:
		return &obstacle{fmt.Sprintf("%s: vppcfg has no %s and takes it for a physical port, of an MTU that VPP does not set",
			h.Interface.Name, strings.ToUpper(h.Kind())), true}
	case tunnel.AsTunnel:
		if other, taken := named[h.Tunnel.VNI]; taken {
			return &obstacle{fmt.Sprintf("%s: vppcfg wants each VNI once, and %s has %d", h.Interface.Name, other, h.Tunnel.VNI), false}
		}
	case access:
		if port := s.ByIndex(h.Interface.Sup); port == nil || port.Device == "Loopback" || port.Device == "virtio" {
			return &obstacle{fmt.Sprintf("%s: vppcfg has lines on physical ports and bonds alone", h.Interface.Name), false}
		}
	}
	return nil
}

// access is the form of an interface that is not a tunnel.
const access tunnel.Vppcfg = -1

func formOf(h *plan.EndInterface) tunnel.Vppcfg {
	if h.Tunnel == nil {
		return access
	}
	return h.Tunnel.Kind().Vppcfg
}

// mtuOf returns the common MTU of a circuit's interfaces. vppcfg requires an MTU for each interface. Both
// sides of a cross-connect must have the same MTU. The MTU of a sub-interface must not exceed the MTU of its
// port.
func mtuOf(s *observe.Snapshot, c circuit, frames map[intent.Key]uint32) (uint32, *obstacle) {
	mtu, whole := uint32(mostMTU), uint32(0)
	ports := 0
	for _, h := range c {
		if h.Tunnel != nil {
			continue
		}
		ports++
		if port := s.ByIndex(h.Interface.Sup); port != nil {
			mtu = min(mtu, port.L3MTU)
		}
		if h.Kind() == "port" {
			whole = max(whole, h.Interface.L3MTU)
		}
	}
	for _, h := range c {
		asPort, kind, link := formOf(h) == tunnel.AsPort, strings.ToUpper(h.Kind()), h.Interface.LinkMTU
		switch {
		case asPort && (link > mtu || whole != 0 && link != whole):
			return 0, &obstacle{fmt.Sprintf("%s: vppcfg has no %s and takes it for a physical port; its MTU is %d and that of the line's port %d",
				h.Interface.Name, kind, link, mtu), true}
		case asPort && link < frames[h.End]:
			return 0, &obstacle{fmt.Sprintf("%s: vppcfg has no %s, takes it for a physical port and would lower its MTU to %d; frames of %d bytes are promised",
				h.Interface.Name, kind, link, frames[h.End]), true}
		case asPort:
			mtu = link
		case ports == 0:
			mtu = h.Interface.L3MTU
		}
	}
	switch name := c[0].Interface.Name; {
	case whole != 0 && whole != mtu:
		return 0, &obstacle{fmt.Sprintf("%s: vppcfg wants the same MTU on both sides of a cross-connect, and its ports have %d and %d", name, mtu, whole), false}
	case mtu < leastMTU:
		return 0, &obstacle{fmt.Sprintf("%s: vppcfg wants an MTU of %d to %d bytes, and that of its port is %d", name, leastMTU, mostMTU, mtu), false}
	}
	return mtu, nil
}

func interfaceOf(s *observe.Snapshot, h *plan.EndInterface, mtu uint32) Interface {
	i := h.Interface
	named := Interface{Name: i.Name, VLL: h.End.VLL, End: h.End.End, Kind: h.Kind(), MTU: mtu, MTUNow: i.L3MTU, AdminUp: i.AdminUp}
	if to, connected := s.Connects[i.Index]; connected {
		if target := s.ByIndex(to); target != nil {
			named.L2XC = target.Name
		}
	}
	if i.IsSub() {
		named.Port, named.SubID = s.ByIndex(i.Sup).Name, i.Sub.ID
		named.Exact, named.InnerDot1q = i.Sub.Exact, i.Sub.Inner
		if i.Sub.Dot1ad {
			named.Dot1ad = i.Sub.Outer
		} else {
			named.Dot1q = i.Sub.Outer
		}
	}
	return named
}

// Text returns only the part as YAML. Comments above it list the interfaces that it cannot name.
func (p *Part) Text() ([]byte, error) {
	return p.textOf(p.document())
}

func (p *Part) textOf(document *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	p.writeRemarks(&out)
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(document); err != nil {
		return nil, fmt.Errorf("vppcfg: %w", err)
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("vppcfg: %w", err)
	}
	return out.Bytes(), nil
}

// writeRemarks writes comments about interfaces that are not named, about states that are temporary, and
// about changes that vppcfg would still make.
func (p *Part) writeRemarks(out *bytes.Buffer) {
	for _, u := range p.Unnamed {
		fmt.Fprintf(out, "# NOT NAMED: %s of line %s, end %s\n#   %s.\n#   %s.\n", u.Name, u.VLL, u.End, u.Why, u.Consequence())
	}
	var others []string
	for _, i := range p.Interfaces {
		if i.ShutDown {
			fmt.Fprintf(out, "# KEPT DOWN: %s of line %s, end %s\n#   The port is down for the far end's link, at this moment. Use this file for no plan later, when the port may be up again.\n",
				i.Name, i.VLL, i.End)
		}
		if i.MTU != i.MTUNow && i.Kind != "port" {
			others = append(others, i.Name)
		}
	}
	if len(others) > 0 {
		fmt.Fprintf(out, "# vppcfg's plan sets the packet MTU of %s, which does not limit frames of their lines.\n# With vpp.vppcfg: present in its configuration the agent sets this MTU itself.\n",
			strings.Join(others, ", "))
	}
}

// Consequence returns the action of vppcfg that follows because the interface is not named.
func (u Unnamed) Consequence() string {
	if u.Stops {
		return "vppcfg plans nothing on this router while it exists (“Not all PHYs in VPP exist in the config”), so it removes nothing either"
	}
	return "vppcfg's plan takes it apart and removes it"
}

func (p *Part) document() *yaml.Node {
	root := mapping()
	tunnels, interfaces, subs := mapping(), mapping(), make(map[string]*yaml.Node)
	for _, t := range p.Tunnels {
		put(tunnels, t.Name, t.node())
	}
	for _, i := range p.Interfaces {
		if i.SubID == 0 {
			put(interfaces, i.Name, i.node())
			continue
		}
		of := subs[i.Port]
		if of == nil {
			port := mapping()
			of = mapping()
			subs[i.Port] = of
			put(port, "sub-interfaces", of)
			put(interfaces, i.Port, port)
		}
		put(of, strconv.FormatUint(uint64(i.SubID), 10), i.node())
	}
	if len(tunnels.Content) > 0 {
		put(root, "vxlan_tunnels", tunnels)
	}
	if len(interfaces.Content) > 0 {
		put(root, "interfaces", interfaces)
	}
	return &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{root}}
}

func (t Tunnel) node() *yaml.Node {
	n := mapping()
	put(n, "description", scalar(description(t.VLL, t.End)))
	put(n, "local", address(t.Local))
	put(n, "remote", address(t.Remote))
	put(n, "vni", number(t.VNI))
	return n
}

func (i Interface) node() *yaml.Node {
	n := mapping()
	if i.Kind != "port" {
		put(n, "description", scalar(description(i.VLL, i.End)))
		put(n, "mtu", number(i.MTU))
	}
	if i.SubID != 0 {
		put(n, "encapsulation", i.encapsulation())
	}
	if i.L2XC != "" {
		put(n, "l2xc", scalar(i.L2XC))
	}
	if !i.AdminUp {
		put(n, "state", scalar("down"))
	}
	return n
}

func (i Interface) encapsulation() *yaml.Node {
	n := mapping()
	n.Style = yaml.FlowStyle
	for _, tag := range []struct {
		name string
		vlan uint16
	}{{"dot1q", i.Dot1q}, {"dot1ad", i.Dot1ad}, {"inner-dot1q", i.InnerDot1q}} {
		if tag.vlan != 0 {
			put(n, tag.name, number(uint32(tag.vlan)))
		}
	}
	put(n, "exact-match", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(i.Exact)})
	return n
}

// description returns at most 64 characters without quotes, as vppcfg requires.
func description(vll, end string) string { return "longline " + vll + ":" + end }

func put(n *yaml.Node, key string, value *yaml.Node) {
	n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, value)
}

func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"} }

func scalar(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}

func number(n uint32) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatUint(uint64(n), 10)}
}

// address returns a quoted address. vppcfg reads YAML 1.1, in which an unquoted IPv6 address may be a number
// to base 60.
func address(text string) *yaml.Node {
	n := scalar(text)
	if strings.Contains(text, ":") {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}
