package vppcfg

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

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
