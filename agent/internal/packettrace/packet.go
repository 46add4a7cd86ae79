package packettrace

import (
	"regexp"
	"strconv"
	"strings"
)

// Packet is one captured packet: where it entered, and what each node of VPP's graph printed about it.
type Packet struct {
	At    string `json:"at"`   // time since VPP's start, "00:12:33:904691"
	From  string `json:"from"` // the line's interface on which it entered
	Nodes []Node `json:"nodes"`
}

// Node is a node with the headers that it printed. Payload bytes are removed, because they are the
// customer's data.
type Node struct {
	Name string   `json:"node"`
	Says []string `json:"says"`
}

// tracedPacket is a packet with the complete output of the tracer.
type tracedPacket struct {
	at    string
	nodes []Node
}

var (
	packetLine = regexp.MustCompile(`^Packet \d+$`)
	nodeLine   = regexp.MustCompile(`^(\d+:\d\d:\d\d:\d{6}): (\S+)$`)
	l2Line     = regexp.MustCompile(`^l2-input: sw_if_index (\d+) dst `)
	// headerLine matches an address pair of some protocol: "IP4: 02:.. -> 02:.. 802.1q vlan 100", "UDP:
	// 10.255.0.1 -> 10.255.0.2".
	headerLine = regexp.MustCompile(`^[A-Za-z0-9_. ]+: \S+ -> \S+`)
	// payload matches bytes of the payload, either separated ("data 08 00 45 00 ...") or in one piece.
	payload = regexp.MustCompile(`\b(?:data )?(?:[0-9a-f]{2} ){3,}[0-9a-f]{2}\b|\b(?:0x)?[0-9a-f]{16,}\b`)
)

// parse parses the output of "show trace", and returns the packets and their number.
func parse(text string) (packets []tracedPacket, count int) {
	var current *tracedPacket
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		node := nodeLine.FindStringSubmatch(line)
		switch {
		case packetLine.MatchString(line):
			packets = append(packets, tracedPacket{})
			current = &packets[len(packets)-1]
		case strings.HasPrefix(line, "---"):
			current = nil
		case current == nil || line == "":
		case node != nil:
			if current.at == "" {
				current.at = node[1]
			}
			current.nodes = append(current.nodes, Node{Name: node[2]})
		case len(current.nodes) > 0:
			last := &current.nodes[len(current.nodes)-1]
			last.Says = append(last.Says, line)
		}
	}
	return packets, len(packets)
}

// enteredBy returns the indices of the interfaces on which the packet entered L2, in the order of VPP's
// nodes.
func (p *tracedPacket) enteredBy() (indices []uint32) {
	for _, node := range p.nodes {
		if node.Name != "l2-input" {
			continue
		}
		for _, says := range node.Says {
			if found := l2Line.FindStringSubmatch(says); found != nil {
				if index, err := strconv.ParseUint(found[1], 10, 32); err == nil {
					indices = append(indices, uint32(index))
				}
			}
		}
	}
	return indices
}

// isOf reports whether the packet entered L2 only on these interfaces. If a packet also entered on another
// interface, it belongs to another line too.
func (p *tracedPacket) isOf(interfaces map[uint32]string) bool {
	entered := p.enteredBy()
	for _, index := range entered {
		if _, ours := interfaces[index]; !ours {
			return false
		}
	}
	return len(entered) > 0
}

func (p *tracedPacket) shown(interfaces map[uint32]string) Packet {
	shown := Packet{At: p.at, From: interfaces[p.enteredBy()[0]]}
	for _, node := range p.nodes {
		headers := Node{Name: node.Name, Says: []string{}}
		for n, says := range node.Says {
			if n == 0 || headerLine.MatchString(says) {
				headers.Says = append(headers.Says, payload.ReplaceAllString(says, "…"))
			}
		}
		shown.Nodes = append(shown.Nodes, headers)
	}
	return shown
}
