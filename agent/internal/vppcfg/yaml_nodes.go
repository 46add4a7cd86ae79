package vppcfg

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

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
