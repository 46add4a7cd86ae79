package vppsim

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/pg"
	"go.fd.io/govpp/binapi/vlib"
)

// stream is a stream of a packet generator. Each time the stream is enabled, the generator sends a number of
// frames to the output of an interface, or receives these frames on its own interface.
type stream struct {
	name        string
	limit, rate int
	size        int // bytes
	made        int // the number of frames since the stream was last enabled
	generator   uint32
	node        string
	frame       []byte // the frame that the generator's interface receives; nil if a node sends the stream
}

func generatorOperations() []operation {
	return []operation{
		on((*vpp).generatorCreate, &pg.PgCreateInterfaceV3Reply{}),
		on((*vpp).generatorDelete, &pg.PgDeleteInterfaceReply{}),
	}
}

func (v *vpp) generatorCreate(c *call, m *pg.PgCreateInterfaceV3) {
	i := v.generator(uint32(m.InterfaceID))
	c.reply(&pg.PgCreateInterfaceV3Reply{SwIfIndex: interface_types.InterfaceIndex(i.index)})
}

// generator returns the generator's interface with this ID, and creates it if necessary. As in VPP, every ID
// is valid.
func (v *vpp) generator(id uint32) *iface {
	if index, found := v.generators[id]; found {
		return v.interfaces[index]
	}
	i := v.insert(&iface{
		name: fmt.Sprintf("pg%d", int32(id)), device: "pg", ethernet: true, mac: portMAC(fmt.Sprint("pg", id)),
		mtu: [4]uint32{defaultMTU}, linkMTU: defaultMTU,
	})
	v.generators[id] = i.index
	return i
}

func (v *vpp) generatorDelete(c *call, m *pg.PgDeleteInterface) {
	reply := &pg.PgDeleteInterfaceReply{}
	if i := v.at(m.SwIfIndex); i == nil || i.device != "pg" {
		reply.Retval = retvalInvalidInterface
	} else {
		for id, index := range v.generators {
			if index == i.index {
				delete(v.generators, id)
			}
		}
		v.setAdmin(i, false)
		v.removeSubinterfaces(i)
		v.remove(i)
	}
	c.reply(reply)
}

// newStream is the only supported form of a stream that is sent to an interface.
var newStream = regexp.MustCompile(`^new \{ name (\S+) limit (\d+) rate (\d+) size (\d+)-(\d+)(?: source pg(\d+))? node (\S+) data \{ hex 0x[0-9a-f]+ \} \}$`)

// newReceived is the only supported form of a stream that a generator's interface receives, as if from a
// cable.
var newReceived = regexp.MustCompile(`^new \{ name (\S+) limit (\d+) size (\d+)-(\d+) interface pg(\d+) node ethernet-input data \{ hex 0x([0-9a-f]+) \} \}$`)

// packetGenerator executes a command of vnet/pg/cli.c. As in VPP, a refusal is a text in the output.
func (v *vpp) packetGenerator(line string) *vlib.CliInbandReply {
	if m := newStream.FindStringSubmatch(line); m != nil {
		return v.addStream(m)
	}
	if m := newReceived.FindStringSubmatch(line); m != nil {
		return v.addReceived(m)
	}
	command, name, _ := strings.Cut(line, " ")
	at := slices.IndexFunc(v.streams, func(s *stream) bool { return s.name == name })
	switch {
	case command == "enable-stream" && at >= 0:
		v.generate(v.streams[at])
		return &vlib.CliInbandReply{}
	case command == "enable-stream":
		return generatorRefusal("packet-generator enable-stream: unknown input `" + name + "'")
	case command == "disable-stream" && at >= 0:
		return &vlib.CliInbandReply{} // it has sent all at once
	case command == "delete" && at >= 0:
		v.streams = slices.Delete(v.streams, at, at+1)
		return &vlib.CliInbandReply{}
	case command == "delete":
		return generatorRefusal("packet-generator delete: expected stream name `" + name + "'")
	}
	return generatorRefusal("packet-generator: unknown input `" + line + "'")
}

func generatorRefusal(text string) *vlib.CliInbandReply {
	return &vlib.CliInbandReply{Retval: retvalUnspecified, Reply: text}
}

// addStream replaces a stream with the same name. Without a source, VPP creates an interface pg-1 for it.
func (v *vpp) addStream(m []string) *vlib.CliInbandReply {
	numbers := make([]int, len(m))
	for n, text := range m {
		numbers[n], _ = strconv.Atoi(text)
	}
	name, node, generator := m[1], m[7], none
	if v.named(node) == nil {
		return generatorRefusal("packet-generator new: unknown input `node " + node + "'")
	}
	if m[6] != "" {
		generator = uint32(numbers[6])
	}
	v.generator(generator)
	v.streams = slices.DeleteFunc(v.streams, func(s *stream) bool { return s.name == name })
	v.streams = append(v.streams, &stream{
		name: name, limit: numbers[2], rate: numbers[3], size: numbers[4], generator: generator, node: node,
	})
	return &vlib.CliInbandReply{}
}

func (v *vpp) addReceived(m []string) *vlib.CliInbandReply {
	limit, _ := strconv.Atoi(m[2])
	size, _ := strconv.Atoi(m[3])
	id, _ := strconv.ParseUint(m[5], 10, 32)
	frame, err := hex.DecodeString(m[6])
	if _, made := v.generators[uint32(id)]; !made || err != nil {
		return generatorRefusal("packet-generator new: unknown input `interface pg" + m[5] + "'")
	}
	v.streams = slices.DeleteFunc(v.streams, func(s *stream) bool { return s.name == m[1] })
	v.streams = append(v.streams, &stream{name: m[1], limit: limit, size: size, generator: uint32(id), frame: frame})
	return &vlib.CliInbandReply{}
}

// generate sends all frames of the stream at once. It also sets the generator's interface up.
func (v *vpp) generate(s *stream) {
	i := v.generator(s.generator)
	i.carrier = true
	v.setAdmin(i, true)
	s.made = s.limit
	if s.frame != nil {
		v.receiveFrames(i, s.limit, s.size, s.frame)
		return
	}
	if out := v.named(s.node); out != nil && out.adminUp {
		if t := v.tunnelAt(out.index); t != nil {
			v.transmit(t, s.size, s.made)
		}
	}
}

// listStreams prints the streams as in vnet/pg/cli.c.
func (v *vpp) listStreams() string {
	if len(v.streams) == 0 {
		return "no streams currently defined\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-16s%12s%16s%s\n", "Name", "Enabled", "Count", "Parameters")
	for _, s := range v.streams {
		fmt.Fprintf(&b, "%-16s%12s%16d limit %d, rate %.2e pps, size %d-%d, buffer-size 2048, worker 0, \n",
			s.name, "No", s.made, s.limit, float64(s.rate), s.size, s.size)
	}
	return b.String()
}
