package vppcfg

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Merge adds the part to an operator's own file and returns the whole file, because vppcfg reads one file.
// The operator's comments, the order and the entries that already match stay unchanged. Merge reports all
// errors at once. An error is an entry that differs, or a line's port that is missing or differs, because
// vppcfg would refuse the whole file.
func (p *Part) Merge(file []byte) ([]byte, error) {
	document := &yaml.Node{}
	if err := yaml.Unmarshal(file, document); err != nil {
		return nil, fmt.Errorf("it is not YAML: %w", err)
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("it is not a file of vppcfg: its top level is not a mapping with `interfaces`")
	}
	m := &merger{root: document.Content[0]}
	for _, t := range p.Tunnels {
		m.tunnel(t)
	}
	for _, i := range p.Interfaces {
		switch {
		case i.SubID != 0:
			m.subInterface(i)
		case i.Kind == "port":
			m.wholePort(i)
		default:
			m.add(m.section("interfaces"), "interfaces."+i.Name, i.Name, i.node(), i.VLL)
		}
	}
	if len(m.wrong) > 0 {
		return nil, errors.Join(m.wrong...)
	}
	return p.textOf(document)
}

type merger struct {
	root  *yaml.Node
	wrong []error
}

func (m *merger) refuse(path, format string, args ...any) {
	err := fmt.Errorf("%s: %s", path, fmt.Sprintf(format, args...))
	if !slices.ContainsFunc(m.wrong, func(known error) bool { return known.Error() == err.Error() }) {
		m.wrong = append(m.wrong, err)
	}
}

func (m *merger) tunnel(t Tunnel) {
	tunnels := m.section("vxlan_tunnels")
	for at := 0; at+1 < len(tunnels.Content); at += 2 {
		name, existing := tunnels.Content[at].Value, tunnels.Content[at+1]
		if vni := child(existing, "vni"); name != t.Name && vni != nil && vni.Value == strconv.FormatUint(uint64(t.VNI), 10) {
			m.refuse("vxlan_tunnels."+name, "it has the VNI %d, and so has %s of line %s; vppcfg wants each VNI once", t.VNI, t.Name, t.VLL)
		}
	}
	m.add(tunnels, "vxlan_tunnels."+t.Name, t.Name, t.node(), t.VLL)
}

func (m *merger) subInterface(i Interface) {
	path := "interfaces." + i.Port
	port := m.port(i)
	if port == nil {
		return
	}
	if mtu := mtuOfPort(port); mtu < i.MTU {
		m.refuse(path, "the file gives it an MTU of %d (without `mtu` vppcfg takes 1500), and %s of line %s has %d, as the port has in VPP; "+
			"vppcfg wants no more than the port's: write `mtu: %[4]d`", mtu, i.Name, i.VLL, i.MTU)
		return
	}
	if state := child(port, "state"); state != nil && state.Value == "down" && i.AdminUp {
		m.refuse(path, "the file has it down, and %s of line %s on it is up", i.Name, i.VLL)
		return
	}
	subs := m.mappingIn(port, path, "sub-interfaces")
	if subs == nil {
		return
	}
	id := strconv.FormatUint(uint64(i.SubID), 10)
	ours, _ := selection(id, i.node())
	for at := 0; at+1 < len(subs.Content); at += 2 {
		other := subs.Content[at].Value
		if frames, _ := selection(other, subs.Content[at+1]); other != id && frames == ours {
			m.refuse(path+".sub-interfaces."+other, "it takes the same frames as %s of line %s", i.Name, i.VLL)
		}
	}
	m.add(subs, path+".sub-interfaces."+id, id, i.node(), i.VLL)
}

// wholePort adds the agent's settings to the entry of a port. The entry may also have settings of the
// operator.
func (m *merger) wholePort(i Interface) {
	path := "interfaces." + i.Name
	port := m.port(i)
	if port == nil {
		return
	}
	for _, key := range []string{"addresses", "lcp", "unnumbered", "sub-interfaces"} {
		if existing := child(port, key); existing != nil {
			m.refuse(path+"."+key, "line %s has the whole port, and vppcfg allows no cross-connect in addition: remove it from the file", i.VLL)
		}
	}
	if mtu := mtuOfPort(port); mtu != i.MTU {
		m.refuse(path, "the file gives it an MTU of %d (without `mtu` vppcfg takes 1500), and VPP %d, which %s of line %s has too: write `mtu: %[2]d`",
			mtu, i.MTU, i.L2XC, i.VLL)
	}
	ours := i.node()
	for at := 0; at < len(ours.Content); at += 2 {
		key, value := ours.Content[at].Value, ours.Content[at+1]
		if existing := child(port, key); existing == nil {
			put(port, key, value)
		} else if existing.Value != value.Value && !(i.ShutDown && key == "state") { // the file has the state without the loss of the far end's link
			m.refuse(path+"."+key, "the file says %s, and with line %s it is %s", existing.Value, i.VLL, value.Value)
		}
	}
	if state := child(port, "state"); i.AdminUp && state != nil && state.Value == "down" {
		m.refuse(path+".state", "the file has it down, and with line %s it is up", i.VLL)
	}
}

// port returns the entry of the interface's port. If the file has no such port, it records an error and
// returns nil.
func (m *merger) port(i Interface) *yaml.Node {
	name := i.Port
	if i.SubID == 0 {
		name = i.Name
	}
	if child(m.section("interfaces"), name) == nil {
		m.refuse("interfaces."+name, "the file does not name this port of line %s; vppcfg wants all of VPP's ports to be named, with their MTU", i.VLL)
		return nil
	}
	return m.mappingIn(m.section("interfaces"), "interfaces."+name, name)
}

// add puts an entry into a mapping, unless the mapping has an entry with the same meaning.
func (m *merger) add(into *yaml.Node, path, key string, ours *yaml.Node, vll string) {
	existing := child(into, key)
	if existing == nil {
		put(into, key, ours)
		return
	}
	got, want := meaning(key, existing), meaning(key, ours)
	fields := maps.Clone(got)
	maps.Copy(fields, want)
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if got[field] != want[field] {
			m.refuse(path, "the file has %s, and with line %s it has %s: remove it from the file, or change it in VPP if it is none of the line's",
				stated(field, got), vll, stated(field, want))
		}
	}
}

func stated(field string, of map[string]string) string {
	if value, exists := of[field]; exists {
		return field + " " + value
	}
	return "no " + field
}

// section returns the mapping with this name at the outermost level of the file. If the mapping is missing,
// section creates it.
func (m *merger) section(name string) *yaml.Node {
	if n := m.mappingIn(m.root, name, name); n != nil {
		return n
	}
	return mapping() // the file is refused already
}

// mappingIn returns the mapping of that key. It creates a missing mapping, and replaces an empty value by a
// mapping. If the value cannot be extended, it records an error and returns nil.
func (m *merger) mappingIn(parent *yaml.Node, path, key string) *yaml.Node {
	for at := 0; at+1 < len(parent.Content); at += 2 {
		switch n := parent.Content[at+1]; {
		case parent.Content[at].Value != key:
			continue
		case n.Kind == yaml.MappingNode:
			n.Style &^= yaml.FlowStyle // {mtu: 9000} would become one long line
			return n
		case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
			n.Kind, n.Tag, n.Value = yaml.MappingNode, "!!map", ""
			return n
		case n.Kind == yaml.AliasNode:
			m.refuse(path, "it is an alias, and an addition would apply to the others too: write it out")
		default:
			m.refuse(path, "it is no mapping")
		}
		return nil
	}
	if child(parent, key) != nil {
		m.refuse(path, "it comes from a merge (<<), and an addition would replace it: write it out")
		return nil
	}
	n := mapping()
	put(parent, key, n)
	return n
}

// child returns the value of a key in a mapping. The value may be an alias or come from a merge (<<). It
// returns nil if the key does not exist.
func child(n *yaml.Node, key string) *yaml.Node {
	n = resolved(n)
	if n.Kind != yaml.MappingNode {
		return nil
	}
	var merged *yaml.Node
	for at := 0; at+1 < len(n.Content); at += 2 {
		value := n.Content[at+1]
		switch {
		case n.Content[at].Value == key:
			return resolved(value)
		case n.Content[at].Tag != "!!merge" || merged != nil:
		case value.Kind == yaml.SequenceNode:
			for _, each := range value.Content {
				if merged == nil {
					merged = child(each, key)
				}
			}
		default:
			merged = child(value, key)
		}
	}
	return merged
}

func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// usualMTU is the MTU (bytes) that vppcfg assumes for a port that has no MTU in the file.
const usualMTU = 1500

func mtuOfPort(port *yaml.Node) uint32 {
	if n := child(port, "mtu"); n != nil {
		if mtu, err := strconv.ParseUint(n.Value, 10, 32); err == nil {
			return uint32(mtu)
		}
	}
	return usualMTU
}

// selection returns the frames that a sub-interface accepts, and whether it accepts only frames with
// exactly these tags. A sub-interface without an encapsulation accepts the VLAN whose number is the number of
// the sub-interface.
func selection(id string, sub *yaml.Node) (frames string, exact bool) {
	encapsulation := child(sub, "encapsulation")
	if encapsulation == nil {
		return "dot1q " + id, true
	}
	var tags []string
	for _, tag := range []string{"dot1q", "dot1ad", "inner-dot1q"} {
		if vlan := child(encapsulation, tag); vlan != nil {
			tags = append(tags, tag+" "+vlan.Value)
		}
	}
	match := child(encapsulation, "exact-match")
	return strings.Join(tags, " "), match != nil && match.Value == "true"
}

// meaning returns the settings of an entry, keyed by name, including vppcfg's defaults.
func meaning(id string, entry *yaml.Node) map[string]string {
	of := map[string]string{"state": "up"}
	for _, key := range []string{
		"local", "remote", "vni", "addresses", "lcp", "mtu", "l2xc", "mac", "mpls", "sflow", "state", "sub-interfaces", "unnumbered", "device-type",
	} {
		switch n := child(entry, key); {
		case n == nil:
		case n.Kind == yaml.ScalarNode:
			of[key] = n.Value
		default:
			of[key] = fmt.Sprintf("(%d of them)", len(n.Content))
		}
	}
	if child(entry, "encapsulation") != nil || child(entry, "vni") == nil && isNumber(id) {
		frames, exact := selection(id, entry)
		of["encapsulation"] = fmt.Sprintf("%s, exact-match %t", frames, exact)
	}
	return of
}

func isNumber(text string) bool {
	_, err := strconv.ParseUint(text, 10, 32)
	return err == nil
}
