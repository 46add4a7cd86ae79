package vppsim

import (
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/pg"
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

func (v *vpp) generatorCreate(m *pg.PgCreateInterfaceV3, reply *pg.PgCreateInterfaceV3Reply) {
	reply.SwIfIndex = interface_types.InterfaceIndex(v.generator(uint32(m.InterfaceID)).index)
}

// generator returns the generator's interface with this ID, and creates it if necessary. As in VPP, every ID
// is valid.
func (v *vpp) generator(id uint32) *iface {
	if i := v.generators[id]; i != nil {
		return i
	}
	i := v.insert(&iface{
		name: fmt.Sprintf("pg%d", int32(id)), device: "pg", ethernet: true, mac: portMAC(fmt.Sprint("pg", id)),
		mtu: [4]uint32{defaultMTU}, linkMTU: defaultMTU,
	})
	v.generators[id] = i
	return i
}

func (v *vpp) generatorDelete(i *iface, _ *pg.PgDeleteInterface) int32 {
	if i.device != "pg" {
		return retvalInvalidInterface
	}
	maps.DeleteFunc(v.generators, func(_ uint32, of *iface) bool { return of == i })
	v.setAdmin(i, false)
	v.removeSubinterfaces(i)
	v.remove(i)
	return 0
}

// newStream matches the two supported forms of a new stream. A stream without an interface has a rate and is sent to
// the interface that node names. A stream with an interface has no rate and the node ethernet-input; the interface
// receives it, as if from a cable.
var newStream = regexp.MustCompile(`^new \{ name (\S+) limit (\d+)(?: rate (\d+))? size (\d+)-(\d+)(?: source pg(\d+)| interface pg(\d+))? ` +
	`node (\S+) data \{ hex 0x([0-9a-f]+) \} \}$`)

// packetGenerator executes a command of vnet/pg/cli.c. As in VPP, a refusal is a text in the output.
func (v *vpp) packetGenerator(line string) (output string, retval int32) {
	if m := newStream.FindStringSubmatch(line); m != nil {
		return v.addStream(m)
	}
	command, name, _ := strings.Cut(line, " ")
	at := slices.IndexFunc(v.streams, func(s *stream) bool { return s.name == name })
	switch {
	case command == "enable-stream" && at >= 0:
		v.generate(v.streams[at])
	case command == "enable-stream":
		return "packet-generator enable-stream: unknown input `" + name + "'", retvalUnspecified
	case command == "disable-stream" && at >= 0: // it has sent all at once
	case command == "delete" && at >= 0:
		v.streams = slices.Delete(v.streams, at, at+1)
	case command == "delete":
		return "packet-generator delete: expected stream name `" + name + "'", retvalUnspecified
	default:
		return "packet-generator: unknown input `" + line + "'", retvalUnspecified
	}
	return "", 0
}

// addStream replaces a stream with the same name. Without a source, VPP creates an interface pg-1 for it.
func (v *vpp) addStream(m []string) (output string, retval int32) {
	numbers := make([]int, len(m))
	for n, text := range m {
		numbers[n], _ = strconv.Atoi(text)
	}
	received := m[7] != ""
	if received != (m[3] == "") || received && m[8] != "ethernet-input" {
		return "packet-generator new: unknown input `" + m[0] + "'", retvalUnspecified
	}
	s := &stream{name: m[1], limit: numbers[2], rate: numbers[3], size: numbers[4], generator: none, node: m[8]}
	if received {
		s.generator, s.node = uint32(numbers[7]), ""
		frame, err := hex.DecodeString(m[9])
		if v.generators[s.generator] == nil || err != nil {
			return "packet-generator new: unknown input `interface pg" + m[7] + "'", retvalUnspecified
		}
		s.frame = frame
	} else if v.named(s.node) == nil {
		return "packet-generator new: unknown input `node " + s.node + "'", retvalUnspecified
	}
	if m[6] != "" {
		s.generator = uint32(numbers[6])
	}
	v.generator(s.generator)
	v.streams = append(slices.DeleteFunc(v.streams, func(other *stream) bool { return other.name == s.name }), s)
	return "", 0
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
